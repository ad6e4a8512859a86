"""A LangGraph store on SQLite or PostgreSQL: namespaces, filters, search by words or meaning, and lifetimes."""

from __future__ import annotations

import asyncio
import copy
import logging
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, cast

from langgraph.store.base import (
    BaseStore,
    IndexConfig,
    Op,
    PutOp,
    Result,
    SearchOp,
    TTLConfig,
    ensure_embeddings,
    get_text_at_path,
    tokenize_path,
    validate_op_namespace,
)

from perihelion import _items as items
from perihelion._database import Connection
from perihelion._native import Seal

logger = logging.getLogger(__name__)

Texts = list[tuple[tuple[tuple[str, ...], str], str, str]]
"""Texts to embed, each with its item and path."""


def _pooled(pool_config: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Returns the options of the class, with the size of the pool as LangGraph's stores have it."""
    size = (pool_config or {}).get("max_size") or 10
    return {"pool_size": size, **options} if pool_config else options


class PerihelionStore(BaseStore):
    """Stores items in SQLite or PostgreSQL.

    All methods come in a synchronous and an asynchronous form and may be mixed, from any thread and any event loop.

    Args:
        address: As for `PerihelionSaver`. Both may use one database.
        index: How to embed texts, as in LangGraph: `embed`, `dims` and `fields`. With it a query finds items by
            meaning; without it, by words. Items that match nothing come last, without a score.
        ttl: Lifetimes, as in LangGraph: `default_ttl`, `refresh_on_read`, `omit_expired`, `sweep_interval_minutes`.
        encryption_key: 16 or 32 bytes for AES-GCM, or several keys: the first encrypts, all decrypt. Namespaces and
            keys are not encrypted.
        pool_size: The most connections to PostgreSQL.

    Example:
        >>> with PerihelionStore.from_conn_string("agents.db") as store:
        ...     store.put(("users", "ada"), "likes", {"text": "green tea"})
        ...     store.search(("users",), query="tea")
    """

    supports_ttl = True

    def __init__(
        self,
        address: str,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        encryption_key: bytes | Sequence[bytes] | None = None,
        pool_size: int = 10,
    ) -> None:
        keys = [encryption_key] if isinstance(encryption_key, bytes) else list(encryption_key or ())
        self.ttl_config = ttl
        self.index_config = index
        self.embeddings = ensure_embeddings(index.get("embed")) if index else None
        fields = (index.get("fields") or cast(Any, index).get("text_fields") if index else None) or ["$"]
        self._fields = [(path, tokenize_path(path) if path != "$" else path) for path in fields]
        self._steps = items.ItemSteps(Seal(keys), bool(ttl and ttl.get("omit_expired")))
        self._connection = Connection(address, pool_size=pool_size)
        self._stops = threading.Event()
        self._sweeper: threading.Thread | None = None

    def _scoped(self, name: str) -> PerihelionStore:
        """Returns the same store with items of its own."""
        scoped = copy.copy(self)
        name = name.replace("%", "%25").replace(".", "%2E")
        scoped._steps = items.ItemSteps(self._steps.seal, self._steps.omits_expired, f".{name}.")
        return scoped

    @classmethod
    @contextmanager
    def from_conn_string(
        cls, conn_string: str, *, pipeline: bool = False, pool_config: Any = None, **options: Any
    ) -> Iterator[PerihelionStore]:
        """Opens a store and closes it at the end of the `with` block. Options are those of the class.

        Statements always travel together, so `pipeline` of LangGraph's stores changes nothing.
        """
        store = cls(conn_string, **_pooled(pool_config, options))
        try:
            yield store
        finally:
            store.close()

    def setup(self) -> None:
        """Creates or updates the tables. The first use does so, too."""
        self._prepare()

    def _prepare(self) -> None:
        self._connection.prepare("items", items.MIGRATIONS)

    def close(self) -> None:
        """Stops the sweeper and closes the connections. Later calls fail."""
        self._stop_sweeper()
        self._connection.close()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Runs operations and returns a result for each. Those that read come before those that write."""
        self._prepare()
        ops = self._checked(ops)
        texts = self._texts(ops)
        queries = self._queries(ops)
        vectors: list[list[float]] = []
        embedded: list[list[float]] = []
        if self.embeddings is not None:
            vectors = self.embeddings.embed_documents([text for _, _, text in texts]) if texts else []
            embedded = [self.embeddings.embed_query(query) for query in queries]
        steps = self._steps.batch(ops, self._placed(texts, vectors), dict(zip(queries, embedded, strict=False)))
        return self._connection.run(steps)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Runs operations and returns a result for each. Those that read come before those that write."""
        self._prepare()
        ops = self._checked(ops)
        texts = self._texts(ops)
        queries = self._queries(ops)
        vectors: list[list[float]] = []
        embedded: list[list[float]] = []
        if self.embeddings is not None:
            vectors = await self.embeddings.aembed_documents([text for _, _, text in texts]) if texts else []
            embedded = await asyncio.gather(*(self.embeddings.aembed_query(query) for query in queries))
        steps = self._steps.batch(ops, self._placed(texts, vectors), dict(zip(queries, embedded, strict=False)))
        return await self._connection.arun(steps)

    def _checked(self, ops: Iterable[Op]) -> list[Op]:
        checked = list(ops)
        for op in checked:
            validate_op_namespace(op)
        return checked

    def _texts(self, ops: Sequence[Op]) -> Texts:
        """Returns the texts of new items that are embedded; those of the last write to an item."""
        if self.embeddings is None:
            return []
        puts = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        texts: Texts = []
        for place, op in puts.items():
            if op.value is None or op.index is False:
                continue
            fields = self._fields if op.index is None else [(path, tokenize_path(path)) for path in op.index]
            for path, tokens in fields:
                found = get_text_at_path(op.value, cast(Any, tokens))
                for number, text in enumerate(found):
                    texts.append((place, f"{path}.{number}" if len(found) > 1 else path, text))
        return texts

    def _queries(self, ops: Sequence[Op]) -> list[str]:
        if self.embeddings is None:
            return []
        return list(dict.fromkeys(op.query for op in ops if isinstance(op, SearchOp) and op.query))

    def _placed(self, texts: Texts, vectors: Sequence[Sequence[float]]) -> items.Vectors:
        placed: dict[tuple[tuple[str, ...], str], list[tuple[str, Sequence[float]]]] = {}
        for (place, path, _), vector in zip(texts, vectors, strict=True):
            placed.setdefault(place, []).append((path, vector))
        return placed

    def sweep_ttl(self) -> int:
        """Deletes expired items and returns how many."""
        self._prepare()
        return self._connection.run(self._steps.sweep())

    def start_ttl_sweeper(self, sweep_interval_minutes: int | None = None) -> None:
        """Deletes expired items from time to time, every five minutes if neither this nor the settings say otherwise."""
        if self._sweeper is not None and self._sweeper.is_alive():
            return
        interval = sweep_interval_minutes or (self.ttl_config or {}).get("sweep_interval_minutes") or 5
        self._stops.clear()
        self._sweeper = threading.Thread(target=self._sweep, args=(interval * 60,), daemon=True, name="perihelion-ttl")
        self._sweeper.start()

    def _sweep(self, seconds: float) -> None:
        while not self._stops.wait(seconds):
            try:
                PerihelionStore.sweep_ttl(self)
            except Exception:
                logger.exception("expired items could not be deleted; trying again in %g seconds", seconds)

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stops the deletion of expired items; returns whether it has stopped."""
        return self._stop_sweeper(timeout)

    def _stop_sweeper(self, timeout: float | None = 5) -> bool:
        self._stops.set()
        sweeper, self._sweeper = self._sweeper, None
        if sweeper is not None:
            sweeper.join(timeout)
        return sweeper is None or not sweeper.is_alive()


class AsyncPerihelionStore(PerihelionStore):
    """The same store, opened by `async with`."""

    @classmethod
    @asynccontextmanager
    async def from_conn_string(  # type: ignore[override]
        cls, conn_string: str, *, pipeline: bool = False, pool_config: Any = None, **options: Any
    ) -> AsyncIterator[AsyncPerihelionStore]:
        """Opens a store and closes it at the end of the `async with` block. Options are those of the class.

        Statements always travel together, so `pipeline` of LangGraph's stores changes nothing.
        """
        store = cls(conn_string, **_pooled(pool_config, options))
        try:
            await asyncio.to_thread(store._prepare)
            yield store
        finally:
            await asyncio.to_thread(store.close)

    async def setup(self) -> None:  # type: ignore[override]
        """Creates or updates the tables. The first use does so, too."""
        await asyncio.to_thread(self._prepare)

    async def sweep_ttl(self) -> int:  # type: ignore[override]
        """Deletes expired items and returns how many."""
        await asyncio.to_thread(self._prepare)
        return await self._connection.arun(self._steps.sweep())

    async def start_ttl_sweeper(self, sweep_interval_minutes: int | None = None) -> None:  # type: ignore[override]
        """Deletes expired items from time to time."""
        super().start_ttl_sweeper(sweep_interval_minutes)

    async def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:  # type: ignore[override]
        """Stops the deletion of expired items; returns whether it has stopped."""
        return await asyncio.to_thread(self._stop_sweeper, timeout)
