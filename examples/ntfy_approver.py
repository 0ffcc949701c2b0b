"""Answers the questions of harness from a phone, through ntfy: an approver outside, without a server of your own.

    NTFY_TOPIC=harness-f81b06c4a7e2 NTFY_TOKEN=tk_... python3 examples/ntfy_approver.py ~/.harness-approver

and in the configuration:

    [approver]
    socket = "/home/ann/.harness-approver"

Subscribe to NTFY_TOPIC in the app. Who reads that topic sees your commands, and can answer: reserve it and its answers
(NTFY_TOPIC with `-answers`) for NTFY_TOKEN, or at least take a name that nobody guesses. NTFY_ANSWER_TOKEN is a token
that may only write answers; it is part of each message. NTFY_URL is your server (default: https://ntfy.sh).
"""

import getpass
import json
import os
import secrets
import select
import socket
import stat
import sys
import time
import urllib.request
from typing import Any

URL, TOPIC = os.environ.get("NTFY_URL", "https://ntfy.sh").rstrip("/"), os.environ["NTFY_TOPIC"]
ANSWERS, POLL_SECONDS, MOST_CHARACTERS = f"{TOPIC}-answers", 5.0, 3_000


def fetch(path: str, data: Any = None) -> str:
    token = os.environ.get("NTFY_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"{URL}/{path}", data and json.dumps(data).encode(), headers)  # noqa: S310
    with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
        return str(response.read().decode())


def button(label: str, text: str) -> dict[str, Any]:
    token = os.environ.get("NTFY_ANSWER_TOKEN")
    headers = {"headers": {"Authorization": f"Bearer {token}"}} if token else {}
    return {"action": "http", "label": label, "url": f"{URL}/{ANSWERS}", "body": text, "clear": True, **headers}


def answered(question: dict[str, Any], asking: socket.socket) -> str | None:
    """Return `yes` or `no`. `None` if the question is withdrawn."""
    call, code, began = question["call"], secrets.token_urlsafe(16), int(time.time()) - 60
    text = json.dumps([call["tool"], call["arguments"], question["workspace"], question["confinement"]])
    if len(text) > MOST_CHARACTERS or not call["shown_whole"]:
        return "no"  # nobody could read all of it on a phone
    label = "Yes, destroy" if call["destroys"] else "Yes"
    actions = [button(label, f"yes {code}"), button("No", f"no {code}")]
    fetch("", {"topic": TOPIC, "title": f"{question['agent']} asks", "message": text, "actions": actions})
    while not select.select([asking], [], [], POLL_SECONDS)[0]:
        for line in fetch(f"{ANSWERS}/json?poll=1&since={began}").splitlines():
            word, _, said = str(json.loads(line).get("message")).partition(" ")
            if word in ("yes", "no") and secrets.compare_digest(said.encode(), code.encode()):
                return word
    return None


os.umask(0o077)  # nobody else may connect
if os.path.lexists(sys.argv[1]) and stat.S_ISSOCK(os.lstat(sys.argv[1]).st_mode):
    os.unlink(sys.argv[1])  # left by an earlier start
with socket.socket(socket.AF_UNIX) as listener:
    listener.bind(sys.argv[1])
    listener.listen()
    while True:
        connection, _ = listener.accept()
        with connection, connection.makefile(encoding="utf-8") as lines:
            try:
                question = json.loads(lines.readline())
                if word := answered(question, connection):
                    answer = {
                        "id": question["id"],
                        "sha256": question["sha256"],
                        "answer": word,
                        "by": getpass.getuser(),
                    }
                    answer |= {"destroys": True} if word == "yes" and question["call"]["destroys"] else {}
                    connection.sendall(json.dumps(answer).encode() + b"\n")
            except (OSError, ValueError, KeyError) as error:  # the connection closes without an answer, which is a no
                print(f"no answer: {type(error).__name__}", file=sys.stderr)
