"""Databases for the tests: SQLite files and, where TEST_DATABASE_URL is set, databases in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from databases import POSTGRES, drop_database, new_database

DATABASES = ["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.skipif(not POSTGRES, reason="no server"))]


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
