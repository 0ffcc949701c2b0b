"""What the tests of the fleet share: a queue with a model behind it, and one Postgres for all that need one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from batch_scene import serving
from fleet_scene import Fleet
from postgres_server import PostgresServer, postgres_server
from program import Program


@pytest.fixture
def fleet(program: Program, tmp_path: Path) -> Iterator[Fleet]:
    """A fleet whose queue is a SQLite file."""
    program.environment["OPENAI_API_KEY"] = "sk-none"
    with serving() as (url, player):
        made = Fleet(program, tmp_path, f"sqlite:///{tmp_path}/queue.db", url, player)
        yield made
        made.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A running Postgres; a test that asks for it is skipped where there is none."""
    with postgres_server() as server:
        if server is None:
            pytest.skip("there is no initdb: no Postgres is installed")
        yield server
