"""`harness schema`: print the JSON Schema of the log or of a run's result."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Mapping

from harness.log.schema import json_schema
from harness.session.exits import Exit


def schema_command(arguments: Namespace, environment: Mapping[str, str]) -> int:  # noqa: ARG001 - as all commands
    """Write the JSON Schema of a record of the action log, or of a run's result, and return the exit code."""
    if arguments.action == "result":
        from harness.app.run.result import RESULT_SCHEMA

        schema: Mapping[str, object] = RESULT_SCHEMA
    else:
        schema = json_schema()
    sys.stdout.write(json.dumps(schema, indent=2) + "\n")
    return Exit.DONE
