"""Perihelion for Python: a LangGraph checkpointer and store on SQLite and PostgreSQL."""

from perihelion.saver import AsyncPerihelionSaver, PerihelionSaver

__all__ = ["AsyncPerihelionSaver", "PerihelionSaver"]
