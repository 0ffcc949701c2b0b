"""Adapters behind the protocol in model.py. One request goes through these modules in this order:

- endpoint, presets, addresses: where a server is, and what it wants otherwise than the API says
- openai_chat, openai_responses: the adapters, one for each API; dialect: what they share; lessons: what refusals teach
- request_body, with chat_body or responses_body, and wire_ids: the conversation as bytes
- openai_wire: tries, and tries again (retries), within deadlines (deadline, reading)
- openai_client, exchange, connections: the SDK, in a thread that can be left at any moment
- answer_check, answer_body: what is no success, and the bytes of a body
- events, wire_json, reply_body: bytes to one whole reply; assembly, chat_reply (chat_calls, chat_finish, chat_echo) or
  responses_reply (responses_items, responses_echo) put it together; unread_calls: calls that stayed in the text
- failures, provider_text: what went wrong instead, in words that say what to do
- recording, replaying: a model that is written down, and what was written in its place; cassette: the file, divergence:
  where a conversation is another
- scripted, loopback, scripted_responses: a model out of a script, for demos and tests
"""
