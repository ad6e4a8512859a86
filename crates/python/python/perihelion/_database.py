"""Connections: batches of statements for threads and for asyncio, and the tables."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Generator, Sequence
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from perihelion import _native
from perihelion._groups import Answers, Groups, Kind, Statement

T = TypeVar("T")

Request = tuple[Sequence[Statement], Kind]
"""Statements that run as one transaction, and whether they write."""

Steps = Generator[Request, Answers, T]
"""Work that asks for transactions and returns a result; the same for both worlds."""

atexit.register(_native.shutdown)


def read(*batch: Statement) -> Request:
    return batch, Kind.READ


def write(*batch: Statement) -> Request:
    return batch, Kind.WRITE


def join(*batch: Statement) -> Request:
    """Writes, if possible together with what is written next."""
    return batch, Kind.JOIN


def _sqlite_path(address: str) -> str:
    for scheme in ("sqlite+aiosqlite:///", "sqlite:///", "sqlite://"):
        if address.startswith(scheme):
            return address[len(scheme) :] or ":memory:"
    return address


def _refuse_second_library(event: str, args: tuple[Any, ...]) -> None:
    if event != "sqlite3.connect" or not args:
        return
    path = args[0]
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    if not isinstance(path, (str, os.PathLike)):
        return
    path = os.fspath(path)
    if isinstance(path, str) and path.startswith("file:"):
        path = unquote(urlsplit(path).path)
    if _native.is_open(path):
        raise RuntimeError(
            "perihelion has this SQLite file open, and a second SQLite library in one process voids its "
            f"locks; close the saver first or read the file in another process: {path}"
        )


_hooked = threading.Lock()
_is_hooked = False


def _watch_sqlite() -> None:
    global _is_hooked
    with _hooked:
        if not _is_hooked:
            sys.addaudithook(_refuse_second_library)
            if hasattr(os, "register_at_fork"):
                after = _native.after_fork
                os.register_at_fork(before=_native.before_fork, after_in_parent=after, after_in_child=after)
            _is_hooked = True


class Connection:
    """A database that runs the steps of savers and stores."""

    def __init__(self, address: str, *, pool_size: int = 10, read_only: bool = False) -> None:
        path = _sqlite_path(address)
        self.native = _native.Database(path, pool_size=pool_size, read_only=read_only)
        self.is_postgres = self.native.is_postgres
        self._users = 1
        self._lock = threading.Lock()
        self._prepared: set[str] = set()
        self._preparing = threading.Lock()
        self._groups = Groups(self.native)
        if not self.is_postgres:
            _watch_sqlite()

    def run(self, steps: Steps[T]) -> T:
        """Runs steps on this thread."""
        try:
            batch, kind = next(steps)
            while True:
                try:
                    answers = self._groups.run(batch, kind)
                except Exception as error:
                    batch, kind = steps.throw(error)
                else:
                    batch, kind = steps.send(answers)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    async def arun(self, steps: Steps[T]) -> T:
        """Runs steps on the running loop, which is never blocked by the database.

        A transaction that was begun is finished even if the awaiting task is cancelled.
        """
        try:
            batch, kind = next(steps)
            while True:
                try:
                    answers = await self._groups.asubmit(batch, kind)
                except Exception as error:
                    batch, kind = steps.throw(error)
                else:
                    batch, kind = steps.send(answers)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def prepare(self, name: str, migrations: Sequence[Sequence[str]]) -> None:
        """Brings the tables of a part to the newest version, once for this connection."""
        if name in self._prepared:
            return
        with self._preparing:
            if name not in self._prepared:
                self._migrate(name, migrations)
                self._prepared.add(name)

    def _migrate(self, name: str, migrations: Sequence[Sequence[str]]) -> None:
        """Brings the tables of a part of the package to the newest version.

        Each migration is a list of statements; `{BYTES}` and the like stand for types of the
        database. Statements that begin with ALTER are for PostgreSQL alone.
        """
        types = _POSTGRES_TYPES if self.is_postgres else _SQLITE_TYPES
        lock: list[Statement] = [("SELECT 1 WHERE pg_advisory_xact_lock(7308613) IS NOT NULL", ())]
        if not self.is_postgres:
            lock = []
        self.native.run([*lock, (_VERSIONS.format(**types), ())], True)
        done = self._version(name)
        while done < len(migrations):
            chosen = [sql for sql in migrations[done] if self.is_postgres or not sql.startswith("ALTER")]
            statements: list[Statement] = [(sql.format(**types), ()) for sql in chosen]
            # A second process that migrates at the same time violates the key here, before it changes a table.
            mark = ("INSERT INTO perihelion_versions (name, version) VALUES (?1, ?2)", (name, done + 1))
            try:
                self.native.run([*lock, mark, *statements], True)
            except RuntimeError:
                if self._version(name) == done:
                    raise
            done = self._version(name)
        if done > len(migrations):
            raise RuntimeError(f"a newer perihelion-agents wrote the {name} of this database; update the package")

    def _version(self, name: str) -> int:
        sql = "SELECT version FROM perihelion_versions WHERE name = ?1 ORDER BY version DESC LIMIT 1"
        (found,) = self.native.run([(sql, (name,))], False)
        return int(found[0][0]) if found else 0

    def share(self) -> Connection:
        """Counts another user; the last one that closes ends the connection."""
        with self._lock:
            self._users += 1
        return self

    def close(self) -> None:
        with self._lock:
            self._users -= 1
            is_last = self._users == 0
        if is_last:
            self.native.close()


_VERSIONS = (
    "CREATE TABLE IF NOT EXISTS perihelion_versions "
    "(name {TEXT} NOT NULL, version {INTEGER} NOT NULL, PRIMARY KEY (name, version))"
)
_SQLITE_TYPES = {
    "TEXT": "TEXT",
    "INTEGER": "INTEGER",
    "REAL": "REAL",
    "BYTES": "BLOB",
    "SERIAL": "INTEGER PRIMARY KEY AUTOINCREMENT",
}
_POSTGRES_TYPES = {
    "TEXT": 'TEXT COLLATE "C"',
    "INTEGER": "BIGINT",
    "REAL": "DOUBLE PRECISION",
    "BYTES": "BYTEA",
    "SERIAL": "BIGSERIAL",
}
