"""A program that answers like `codex --version` and `codex app-server`: it lists the hooks of its home, and notes trust.

FAKE_CODEX says how it fails: `silent` answers nothing, `refuses` refuses each write, `noisy` says other things in between.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

HOME = Path(os.environ.get("CODEX_HOME") or Path(os.environ["HOME"], ".codex"))
TRUSTED = HOME / "trusted.json"


def hooks() -> list[dict[str, object]]:
    path = HOME / "hooks.json"
    held: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"hooks": {}}
    trusted = json.loads(TRUSTED.read_text()) if TRUSTED.exists() else {}
    found: list[dict[str, object]] = []
    for event, groups in held["hooks"].items():
        for number, group in enumerate(groups):
            for place, hook in enumerate(group["hooks"]):
                key = f"{path}:{event}:{number}:{place}"
                digest = hashlib.sha256(json.dumps([group["matcher"], hook]).encode()).hexdigest()
                known = trusted.get(key, {}).get("trusted_hash")
                trust = "untrusted" if known is None else "trusted" if known == digest else "modified"
                found.append(
                    {
                        "key": key,
                        "command": hook["command"],
                        "sourcePath": str(path),
                        "currentHash": digest,
                        "trustStatus": trust,
                    }
                )
    return found


def answer(asked: dict[str, Any]) -> dict[str, object]:
    match asked["method"]:
        case "initialize":
            return {"result": {"userAgent": "codex"}}
        case "hooks/list":
            return {"result": {"data": [{"cwd": asked["params"]["cwds"][0], "hooks": hooks()}]}}
        case "config/batchWrite" if os.environ.get("FAKE_CODEX") != "refuses":
            [edit] = asked["params"]["edits"]
            assert (edit["keyPath"], edit["mergeStrategy"]) == ("hooks.state", "upsert")
            TRUSTED.write_text(json.dumps(edit["value"]))
            return {"result": {"status": "ok"}}
        case _:
            return {"error": {"code": -32600, "message": "not this"}}


if sys.argv[1:] == ["--version"]:
    print("codex-cli 9.9.9")
    sys.exit()
assert sys.argv[1:] == ["app-server"]
for line in sys.stdin:
    asked = json.loads(line)
    if os.environ.get("FAKE_CODEX") == "silent":
        time.sleep(600)
    if os.environ.get("FAKE_CODEX") == "noisy":
        print('no JSON\n[]\n{"method": "status/changed", "params": {}}\n{"id": 999, "result": {}}')
    if "id" in asked:
        print(json.dumps({"id": asked["id"], **answer(asked)}), flush=True)
