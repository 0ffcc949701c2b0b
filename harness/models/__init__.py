"""The wire: models behind the protocol of harness/model.py, and models that are scripted or recorded.

Read `openai_wire` first: it sends a request to a server, retries and reads the reply. One request passes through:

- `endpoint`: where a server is, and its bounds. `presets`: servers that people use, one entry each
- `openai_chat`, `openai_responses`, `anthropic_messages`: the adapters, and what a conversation is in their requests. What
  they share is in `dialect`; what is encoded once is in `request_body`, which attachments are sent in `sight`
- `openai_client`: the openai SDK, which is imported here alone, and only when a request is near (`sparing_import` says how).
  `exchange`: one request in a thread that can be left at any moment
- `http_answer`: what is no success. `failures`: what went wrong, in words that say what to do. `retries`: whether to try again
- `wire_format`, `reply_body`: bytes to events to one whole reply, which `chat_reply` (with `chat_calls` and `chat_echo`) or
  `responses_reply` (with `responses_items`) put together

Models without a provider: `scripted` plays a script, `loopback` serves it over HTTP, `recorder` and `replayer` write
and read a `cassette`, and `divergence` finds where a conversation differs.

A model turns messages into a reply. It knows nothing of the gate, runs no tool, and reads no configuration.
"""
