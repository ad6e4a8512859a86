"""Databases for the tests: SQLite files and, where TEST_DATABASE_URL is set, databases in PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import pytest
from perihelion._database import Connection

POSTGRES = os.environ.get("TEST_DATABASE_URL")

DATABASES = ["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.skipif(not POSTGRES, reason="no server"))]


def new_database() -> tuple[str, str]:
    """Creates a database in PostgreSQL and returns its name and address."""
    assert POSTGRES
    name = f"perihelion_python_{uuid4().hex}"
    server = Connection(POSTGRES)
    server.native.run([(f"CREATE DATABASE {name}", ())], True)
    server.close()
    return name, urlunsplit(urlsplit(POSTGRES)._replace(path=f"/{name}"))


def drop_database(name: str) -> None:
    assert POSTGRES
    server = Connection(POSTGRES)
    server.native.run([(f"DROP DATABASE {name} WITH (FORCE)", ())], True)
    server.close()


@pytest.fixture(params=DATABASES)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "memory":
        yield ":memory:"
    elif request.param == "sqlite":
        yield str(tmp_path / "agents.db")
    else:
        name, url = new_database()
        yield url
        drop_database(name)
