"""A hook that writes down what it is told, and answers as the file `answer.json` beside it says: `recording_hook.py EVENT`."""

import json
import os
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def main(event: str) -> None:
    told = sys.stdin.buffer.read().decode()
    line = json.dumps([event, told]) + "\n"
    with open(os.path.join(HERE, "told.jsonl"), "a", encoding="utf-8") as log:
        log.write(line)
    with open(os.path.join(HERE, "answer.json"), encoding="utf-8") as file:
        answer = json.load(file).get(event, {})
    time.sleep(answer.get("seconds", 0))
    if answer.get("killed"):
        os.kill(os.getpid(), signal.SIGKILL)
    sys.stdout.write(answer.get("stdout", ""))
    sys.stderr.write(answer.get("stderr", ""))
    sys.exit(answer.get("code", 0))


main(sys.argv[1])
