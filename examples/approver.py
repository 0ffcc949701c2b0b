"""Answers the questions of harness at a terminal of its own: an approver outside, in few lines.

    python3 examples/approver.py ~/.harness-approver

and in the configuration:

    [approver]
    socket = "/home/ann/.harness-approver"
"""

import getpass
import json
import os
import select
import socket
import stat
import sys
import termios

WITHDRAWN = "\nwithdrawn: nobody waits for an answer any more"

os.umask(0o077)  # nobody else may connect
if os.path.lexists(sys.argv[1]) and stat.S_ISSOCK(os.lstat(sys.argv[1]).st_mode):
    os.unlink(sys.argv[1])  # left by an earlier start
with socket.socket(socket.AF_UNIX) as listener:
    listener.bind(sys.argv[1])
    listener.listen()
    while True:
        connection, _ = listener.accept()
        with connection, connection.makefile(encoding="utf-8") as lines:
            asked = lines.readline()
            if not asked.endswith("\n"):
                continue  # it was withdrawn before it was asked
            question = json.loads(asked)
            print(json.dumps(question, indent=2))  # ASCII alone: nothing in it can play with this terminal
            if sys.stdin.isatty():
                termios.tcflush(sys.stdin, termios.TCIFLUSH)  # what was typed before is no answer
            print("yes, no or stop? ", end="", flush=True)
            if connection in select.select([connection, sys.stdin], [], [])[0]:
                print(WITHDRAWN, flush=True)
                continue
            said = input()
            answer = {"id": question["id"], "sha256": question["sha256"], "answer": said, "by": getpass.getuser()}
            if said == "yes" and question["call"]["destroys"]:
                answer["destroys"] = input("this destroys; type destroy: ") == "destroy"
            try:
                connection.sendall(json.dumps(answer).encode() + b"\n")
            except BrokenPipeError:
                print(WITHDRAWN)
