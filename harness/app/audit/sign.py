"""`harness audit sign`: sign the size and head of closed logs; see audit/signed_heads.py."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Mapping

from harness.app.audit.logs import named_logs, worst
from harness.audit.findings import Findings, Soundness, judge_log
from harness.audit.signed_heads import sign_head
from harness.log.clocks import timestamp
from harness.log.heads_file import HeadNote, HeadsFile
from harness.session.state import State
from harness.text.visible import visible_line


def command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Sign the heads of closed logs that verify. Return the exit code. Raises HarnessError.

    If a log is not signed, the exit code is that of `audit verify`.
    """
    state = State.of(environment)
    heads = HeadsFile(state.heads)
    unsigned = []
    for path in named_logs(arguments, state):
        findings = judge_log(path, heads)
        if findings.unfit or findings.soundness is Soundness.OPEN:
            unsigned.append(findings.soundness)
            sys.stdout.write(f"{visible_line(path, 5_000)}: NOT signed: {visible_line(findings.reason, 1_000)}\n")
            continue
        verification = findings.verification
        sign_head(
            path,
            HeadNote(
                records=verification.records,
                head=verification.head,
                size=verification.bytes,
                session=verification.sessions[-1],
                time=timestamp(time.time()),
            ),
            arguments.key,
            environment,
        )
        unknown = "" if findings.soundness is Soundness.WHOLE else f"; as it stands: {_not_compared(findings)}"
        sys.stdout.write(
            f"{visible_line(path, 5_000)}: signed, {verification.records} records, head {verification.head}{unknown}\n"
        )
    return worst(unsigned)


def _not_compared(findings: Findings) -> str:
    """Return the reason why the end of a log could not be compared with a noted head."""
    noted_head = findings.evidence.known_head
    if noted_head is None:
        return "no head was noted to compare it with"
    return f"no head was noted when it was closed, the last one at record {noted_head.records}"
