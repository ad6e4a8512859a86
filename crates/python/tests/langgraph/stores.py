# Appended to the conftest.py of LangGraph's own store tests by run.sh: the names of its stores mean Perihelion's.
import langgraph.store.postgres as _postgres
import langgraph.store.postgres.aio as _postgres_aio
import langgraph.store.sqlite as _sqlite
import langgraph.store.sqlite.aio as _sqlite_aio
from perihelion import AsyncPerihelionStore as _AsyncPerihelionStore
from perihelion import PerihelionStore as _PerihelionStore

_sqlite.SqliteStore = _PerihelionStore
_postgres.PostgresStore = _PerihelionStore
_sqlite.AsyncSqliteStore = _sqlite_aio.AsyncSqliteStore = _AsyncPerihelionStore
_postgres.AsyncPostgresStore = _postgres_aio.AsyncPostgresStore = _AsyncPerihelionStore


class _NoCursor:
    """Stands for the cursor with which fixtures drop the table of PostgresStore's migrations."""

    def __enter__(self):
        return self

    async def __aenter__(self):
        return type("Cursor", (), {"execute": staticmethod(_nothing)})

    def __exit__(self, *raised): ...

    async def __aexit__(self, *raised): ...

    def execute(self, sql, *values):
        assert "store_migrations" in sql, sql


async def _nothing(sql, *values):
    assert "store_migrations" in sql, sql


_PerihelionStore.MIGRATIONS = ()
_PerihelionStore._cursor = lambda store: _NoCursor()
