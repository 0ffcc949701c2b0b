"""Answers the questions of harness at a terminal of its own: an approver outside, in twenty lines.

    python3 examples/approver.py ~/.harness-approver

and in the configuration:

    [approver]
    socket = "/home/ann/.harness-approver"
"""

import getpass
import json
import os
import socket
import sys

os.umask(0o077)  # nobody else may connect
with socket.socket(socket.AF_UNIX) as listener:
    listener.bind(sys.argv[1])
    listener.listen()
    while True:
        connection, _ = listener.accept()
        with connection, connection.makefile("rw", encoding="utf-8") as lines:
            question = json.loads(lines.readline())
            print(json.dumps(question, indent=2))  # ASCII alone: nothing in it can play with this terminal
            said = input("yes, no or stop? ")
            answer = {"id": question["id"], "sha256": question["sha256"], "answer": said, "by": getpass.getuser()}
            if said == "yes" and question["call"]["destroys"]:
                answer["destroys"] = input("this destroys; type destroy: ") == "destroy"
            print(json.dumps(answer), file=lines, flush=True)
