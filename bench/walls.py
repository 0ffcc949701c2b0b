"""Measure a command in the workspace walls by each backend, above a plain start in the same run.

Usage: python bench/walls.py [--quick]. Prints a table; always exits 0: a bench measures, it does not judge. The aim for
namespaces is 2 ms above a plain start with 10 hidden files and 20 protected places, and 5 ms with 200 hidden files.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial

from tools import interleaved, milliseconds

from harness.process.start import Launch, start
from harness.record import replace
from harness.sandbox import Machine, Unhidden, Walls, hides_where_it_may_write, prepare, probe, why_no_namespaces
from harness.sandbox.keeper import keeper

SIZES = ((0, 0), (10, 20), (200, 20))
"""Numbers of hidden files and of protected places."""


def workspace_walls(folder: str, hidden: int, protected: int) -> Walls:
    """Return the walls of a new workspace in `folder`, with so many hidden and protected places."""
    for name in ("w", "t"):
        os.makedirs(f"{folder}/{name}", exist_ok=True)
    hide = [_file(f"{folder}/w/hidden-{number % 10}/{number}.pem") for number in range(hidden)]
    keep = [_file(f"{folder}/w/protected-{number % 5}/{number}") for number in range(protected)]
    return Walls(
        write=(f"{folder}/w",),
        network=False,
        hide=tuple(hide),
        keep=tuple(keep),
        unix_sockets=False,
        temporary=f"{folder}/t",
    )


def _file(path: str) -> str:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii") as file:
        file.write("content\n")
    return path


def run(walls: Walls | None, machine: Machine) -> None:
    """Run `true`, in walls or without."""
    launch = Launch(argv=("true",), executable="/bin/true", cwd="/", environment={})
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        if walls is None:
            start(launch, nothing, nothing).wait()
            return
        with prepare(walls, machine, unhidden=Unhidden.TELL) as confinement:
            held = replace(
                launch,
                confine=confinement.enter,
                starter=confinement.starter,
                prefix=confinement.prefix,
                descriptors=confinement.descriptors,
            )
            start(held, nothing, nothing).wait()
    finally:
        os.close(nothing)


def machines() -> dict[str, Machine]:
    """Return the backends of this machine, by name."""
    here = probe()
    found = {"landlock": replace(here, no_namespaces="off", bubblewrap="")}
    if hides_where_it_may_write(replace(here, no_namespaces="off")):
        found["bubblewrap"] = replace(here, no_namespaces="off")
    if why_no_namespaces(here):
        print(f"no namespaces here: {why_no_namespaces(here)}")
    else:
        found["namespaces"] = here
    return found


def main() -> int:
    runs = 10 if "--quick" in sys.argv else 60
    print(f"{'keeper ready':>20}: {milliseconds(keeper().why_not):.1f} ms after its start")
    backends = machines()
    for hidden, protected in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            walls = workspace_walls(os.path.realpath(folder), hidden, protected)
            ways: dict[str, Callable[[], object]] = {"plain": partial(run, None, probe())}
            ways |= {name: partial(run, walls, machine) for name, machine in backends.items()}
            ways["reader"] = partial(run, replace(walls, write=(), keep=()), probe())
            bubblewrap = ways.pop("bubblewrap", None)
            medians = interleaved(ways, runs)
            if bubblewrap is not None:  # by itself: its mounts are still being removed after its end
                medians |= interleaved({"bubblewrap": bubblewrap}, runs)
        above = ", ".join(f"{name} +{took - medians['plain']:.2f}" for name, took in medians.items() if name != "plain")
        print(f"{hidden:>4} hidden, {protected:>2} protected: plain {medians['plain']:.2f} ms; {above}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
