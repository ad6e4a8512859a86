"""A LangGraph checkpointer on SQLite or PostgreSQL that stores what a step changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from perihelion import _rows
from perihelion._channels import Cache
from perihelion._database import Connection
from perihelion._effects import Effect, EffectSteps
from perihelion._history import HistorySteps
from perihelion._native import Seal
from perihelion._steps import LONGEST_PAGE, PAGE, next_version
from perihelion._types import collect_types_of_graphs

Version = Any

CACHED_CHANNELS = 1024


def _keys(encryption_key: bytes | Sequence[bytes] | None) -> list[bytes]:
    if encryption_key is None:
        return []
    return [encryption_key] if isinstance(encryption_key, bytes) else list(encryption_key)


class PerihelionSaver(BaseCheckpointSaver[Version]):
    """Stores checkpoints in SQLite or PostgreSQL. Lists and dicts are stored by what a step changed.

    All methods come in a synchronous and an asynchronous form and may be mixed, from any thread and any event loop.

    Args:
        address: `:memory:`, the path of a SQLite file, `sqlite:///PATH`, or a connection string of PostgreSQL
            (`postgresql://…` or `host=… dbname=…`).
        serde: A serialiser of LangGraph. By default MessagePack that loads LangGraph's safe types, the types in the
            state of the graph, and `allowed_types`.
        allowed_types: Further types that stored values may have: classes or `(module, name)`.
        encryption_key: 16 or 32 bytes for AES-GCM, or several keys: the first encrypts, all decrypt.
        strict: Encode every element of a list or dict at each step. Without it an object that was changed in place
            is noticed at once among the last 64 elements, and within some steps among the others.
        pool_size: The most connections to PostgreSQL.

    Example:
        >>> with PerihelionSaver.from_conn_string("agents.db") as saver:
        ...     graph = builder.compile(checkpointer=saver)
    """

    def __init__(
        self,
        address: str,
        *,
        serde: SerializerProtocol | None = None,
        allowed_types: Iterable[tuple[str, ...] | type] = (),
        encryption_key: bytes | Sequence[bytes] | None = None,
        strict: bool = False,
        pool_size: int = 10,
    ) -> None:
        if serde is None:
            collect_types_of_graphs()
            serde = JsonPlusSerializer(allowed_msgpack_modules=tuple(allowed_types) or None)
        super().__init__(serde=serde)
        self.strict = strict
        self._seal = Seal(_keys(encryption_key))
        self._cache = Cache(CACHED_CHANNELS)
        self._connection = Connection(address, pool_size=pool_size)

    @classmethod
    @contextmanager
    def from_conn_string(
        cls, conn_string: str, *, pipeline: bool = False, **options: Any
    ) -> Iterator[PerihelionSaver]:
        """Opens a saver and closes it at the end of the `with` block. Options are those of the class.

        Statements always travel together, so `pipeline` of LangGraph's savers changes nothing.
        """
        saver = cls(conn_string, **options)
        try:
            yield saver
        finally:
            saver.close()

    def setup(self) -> None:
        """Creates or updates the tables. The first use does so, too."""
        self._prepare()

    def _prepare(self) -> None:
        self._connection.prepare("checkpoints", _rows.MIGRATIONS)

    def close(self) -> None:
        """Closes the connections. Later calls fail."""
        self._connection.close()

    @property
    def _steps(self) -> HistorySteps:
        self._prepare()
        return HistorySteps(self.serde, self._seal, self._cache, self.strict)

    def get_next_version(self, current: Version | None, channel: None) -> Version:
        """Returns the version that follows another."""
        return next_version(current)

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> PerihelionSaver:
        """Returns a saver on the same connections that loads further types."""
        clone = super().with_allowlist(extra_allowlist)
        assert isinstance(clone, PerihelionSaver)
        return clone

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Returns the checkpoint of a config, or the newest one of its thread and namespace."""
        return self._connection.run(self._steps.get(config))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Returns the checkpoint of a config, or the newest one of its thread and namespace."""
        return await self._connection.arun(self._steps.get(config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yields checkpoints, newest first; with `filter` those that have it within their metadata."""
        after, page, left = None, _first_page(filter, limit), limit
        while left is None or left > 0:
            found, after = self._connection.run(self._steps.page(config, filter, before, after, page))
            yield from found[:left]
            if after is None:
                return
            left = None if left is None else left - len(found)
            page = min(page * 2, LONGEST_PAGE)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yields checkpoints, newest first; with `filter` those that have it within their metadata."""
        after, page, left = None, _first_page(filter, limit), limit
        while left is None or left > 0:
            found, after = await self._connection.arun(self._steps.page(config, filter, before, after, page))
            for one in found[:left]:
                yield one
            if after is None:
                return
            left = None if left is None else left - len(found)
            page = min(page * 2, LONGEST_PAGE)

    def put(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: ChannelVersions
    ) -> RunnableConfig:
        """Stores a checkpoint and the values of the channels in `new_versions`."""
        return self._connection.run(self._steps.put(config, checkpoint, metadata, new_versions))

    async def aput(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: ChannelVersions
    ) -> RunnableConfig:
        """Stores a checkpoint and the values of the channels in `new_versions`."""
        return await self._connection.arun(self._steps.put(config, checkpoint, metadata, new_versions))

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Stores what a task wrote before its step is complete."""
        self._connection.run(self._steps.put_writes(config, writes, task_id, task_path))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Stores what a task wrote before its step is complete."""
        await self._connection.arun(self._steps.put_writes(config, writes, task_id, task_path))

    def delete_thread(self, thread_id: str) -> None:
        """Deletes a thread with all of its checkpoints, writes and values."""
        self._connection.run(self._steps.delete_thread(str(thread_id)))

    async def adelete_thread(self, thread_id: str) -> None:
        """Deletes a thread with all of its checkpoints, writes and values."""
        await self._connection.arun(self._steps.delete_thread(str(thread_id)))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Deletes the checkpoints of runs, their writes, and values that no other checkpoint has."""
        self._connection.run(self._steps.delete_for_runs(run_ids))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Deletes the checkpoints of runs, their writes, and values that no other checkpoint has."""
        await self._connection.arun(self._steps.delete_for_runs(run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies a thread with its whole history."""
        self._connection.run(self._steps.copy_thread(str(source_thread_id), str(target_thread_id)))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies a thread with its whole history."""
        await self._connection.arun(self._steps.copy_thread(str(source_thread_id), str(target_thread_id)))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keeps the newest checkpoint of each namespace (`keep_latest`), or none (`delete`).

        Checkpoints from which the value of a DeltaChannel still follows are kept as well.
        """
        self._connection.run(self._steps.prune(thread_ids, strategy))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keeps the newest checkpoint of each namespace (`keep_latest`), or none (`delete`)."""
        await self._connection.arun(self._steps.prune(thread_ids, strategy))

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Returns the writes to DeltaChannels since their last stored value, oldest first."""
        return self._connection.run(self._steps.history(config, channels))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Returns the writes to DeltaChannels since their last stored value, oldest first."""
        return await self._connection.arun(self._steps.history(config, channels))

    @property
    def _journal(self) -> EffectSteps:
        self._prepare()
        return EffectSteps(self.serde, self._seal)

    def effects(self, thread_id: str) -> Sequence[Effect]:
        """Returns what `once` and `ask` recorded for a thread, oldest step first."""
        return self._connection.run(self._journal.effects(str(thread_id)))

    async def aeffects(self, thread_id: str) -> Sequence[Effect]:
        """Returns what `once` and `ask` recorded for a thread, oldest step first."""
        return await self._connection.arun(self._journal.effects(str(thread_id)))

    def settle(self, thread_id: str, key: str, outcome: Any) -> None:
        """Records the outcome of an effect that happened, after `once` raised `OutcomeUnknown`."""
        self._connection.run(self._journal.settle(str(thread_id), key, outcome))

    async def asettle(self, thread_id: str, key: str, outcome: Any) -> None:
        """Records the outcome of an effect that happened, after `once` raised `OutcomeUnknown`."""
        await self._connection.arun(self._journal.settle(str(thread_id), key, outcome))

    def withdraw(self, thread_id: str, key: str) -> None:
        """Removes an effect that did not happen, so that `once` runs its function again."""
        self._connection.run(self._journal.withdraw_key(str(thread_id), key))

    async def awithdraw(self, thread_id: str, key: str) -> None:
        """Removes an effect that did not happen, so that `once` runs its function again."""
        await self._connection.arun(self._journal.withdraw_key(str(thread_id), key))


class AsyncPerihelionSaver(PerihelionSaver):
    """The same saver, opened by `async with`.

    Example:
        >>> async with AsyncPerihelionSaver.from_conn_string("postgresql://…") as saver:
        ...     graph = builder.compile(checkpointer=saver)
    """

    @classmethod
    @asynccontextmanager
    async def from_conn_string(  # type: ignore[override]
        cls, conn_string: str, *, pipeline: bool = False, **options: Any
    ) -> AsyncIterator[AsyncPerihelionSaver]:
        """Opens a saver and closes it at the end of the `async with` block. Options are those of the class.

        Statements always travel together, so `pipeline` of LangGraph's savers changes nothing.
        """
        saver = cls(conn_string, **options)
        try:
            await asyncio.to_thread(saver._prepare)
            yield saver
        finally:
            saver.close()

    async def setup(self) -> None:  # type: ignore[override]
        """Creates or updates the tables. The first use does so, too."""
        await asyncio.to_thread(self._prepare)


def _first_page(filter: dict[str, Any] | None, limit: int | None) -> int:
    return PAGE if filter or limit is None else max(1, min(limit, LONGEST_PAGE))
