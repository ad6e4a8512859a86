"""Perihelion for Python: a LangGraph checkpointer and store on SQLite and PostgreSQL, and effects that happen once."""

from perihelion._effects import Effect
from perihelion.copying import acopy_from, copy_from
from perihelion.effects import NOT_DONE, aask, ask, idempotency_key, once
from perihelion.errors import EffectDiverged, EffectError, OutcomeUnknown
from perihelion.saver import AsyncPerihelionSaver, PerihelionSaver
from perihelion.store import AsyncPerihelionStore, PerihelionStore

__all__ = [
    "NOT_DONE",
    "AsyncPerihelionSaver",
    "AsyncPerihelionStore",
    "Effect",
    "EffectDiverged",
    "EffectError",
    "OutcomeUnknown",
    "PerihelionSaver",
    "PerihelionStore",
    "aask",
    "acopy_from",
    "ask",
    "copy_from",
    "idempotency_key",
    "once",
]
