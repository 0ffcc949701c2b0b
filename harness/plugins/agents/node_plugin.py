"""The plugin of an agent that runs on Node: a file, all of it ours, that starts our hook and throws unless that allows."""

from __future__ import annotations

import json
from collections.abc import Mapping

from harness.actions import JsonValue
from harness.plugins.agents.guarded_agent import HookAnswer, as_json

_HEARD = """\
// The gate of `harness` before the tools of %(title)s; `harness hook uninstall %(name)s` takes it away.
// Whatever goes wrong in here throws, and what throws here does not run.
import { spawn } from "node:child_process";

const COMMAND = %(command)s;
const MILLISECONDS = %(milliseconds)d;

const heard = (event, cwd) =>
  new Promise((resolve, reject) => {
    const child = spawn("/bin/sh", ["-c", COMMAND], { cwd, stdio: ["pipe", "pipe", "pipe"] });
    const said = { stdout: [], stderr: [] };
    const late = setTimeout(() => {
      child.kill("SIGKILL");
      reject(new Error("harness: no answer in time"));
    }, MILLISECONDS);
    for (const name of ["stdout", "stderr"]) child[name].on("data", (data) => said[name].push(data));
    child.stdin.on("error", () => {});
    child.on("error", (error) => reject(new Error(`harness: the hook cannot be started: ${error.message}`)));
    child.on("close", (code) => {
      clearTimeout(late);
      const text = (name) => Buffer.concat(said[name]).toString("utf8").trim();
      if (code === 0) resolve(text("stdout"));
      else reject(new Error(text("stderr") || "harness: the hook failed"));
    });
    child.stdin.end(JSON.stringify(event));
  });

const put = (args, other) => {
  for (const name of Object.keys(args)) if (!(name in other)) delete args[name];
  Object.assign(args, other);
};

"""


def allow(arguments: Mapping[str, JsonValue] | None) -> HookAnswer:
    """Return the answer that lets a call run, with its own arguments or with `arguments`, in the plugin's own form."""
    return HookAnswer() if arguments is None else as_json({"args": dict(arguments)})


def plugin_file(
    name: str, title: str, command: str, exported: str, *, milliseconds: int = 600_000
) -> Mapping[str, JsonValue]:
    """Return the content of the plugin of the agent `name`, as `GuardedAgent.settings_content` does.

    Our hook has `milliseconds` to answer. `exported` is the JavaScript that registers with the agent. It may use
    `heard(event, cwd)`, which runs our hook and returns its stdout, and `put(args, other)`, which replaces the arguments of
    a call.
    """
    facts = {"name": name, "title": title, "command": json.dumps(command), "milliseconds": milliseconds}
    return {"text": _HEARD % facts + exported}
