"""Perihelion for Python: a LangGraph checkpointer and store on SQLite and PostgreSQL."""

from perihelion.copying import acopy_from, copy_from
from perihelion.saver import AsyncPerihelionSaver, PerihelionSaver
from perihelion.store import AsyncPerihelionStore, PerihelionStore

__all__ = [
    "AsyncPerihelionSaver",
    "AsyncPerihelionStore",
    "PerihelionSaver",
    "PerihelionStore",
    "acopy_from",
    "copy_from",
]
