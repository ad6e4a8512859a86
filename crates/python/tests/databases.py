"""Databases in PostgreSQL for the tests, where TEST_DATABASE_URL is set."""

from __future__ import annotations

import os
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

from perihelion._database import Connection

POSTGRES = os.environ.get("TEST_DATABASE_URL")


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
