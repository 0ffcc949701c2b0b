"""Clients of model servers, and scripted or recorded models. All implement the protocol of harness/model.py.

Read `openai_wire` first: it sends a request to a server, retries and reads the reply. One request passes through:

- `endpoint`: the address and the bounds of a server. `presets`: one entry for each commonly used server
- `openai_chat`, `openai_responses`, `anthropic_messages`: the adapters; each encodes a conversation as a request. Their
  common part is `dialect`. `request_body` encodes each message once; `sight` selects the attachments to send
- `openai_client`: the openai SDK. It is imported only here, shortly before a request (see `sparing_import`).
  `exchange`: one request in a thread that can be abandoned at any moment
- `http_answer`: unsuccessful answers. `failures`: error messages with advice. `retries`: whether to try again
- `wire_format`, `reply_body`: bytes to events to one whole reply. `chat_reply` (with `chat_calls` and `chat_echo`) or
  `responses_reply` (with `responses_items`) assembles that reply

Models without a provider: `scripted` plays a script, and `loopback` serves it over HTTP. `recorder` and `replayer`
write and read a `cassette`. `divergence` finds the first difference from a recorded conversation.

A model turns messages into a reply. It has no access to the gate, runs no tool, and reads no configuration.
"""
