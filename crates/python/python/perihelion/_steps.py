"""The work of the saver as steps: what to read, what to write, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import TASKS

from perihelion import _rows as rows
from perihelion._channels import Cache, Encoder, Key, Row, Version, is_inline
from perihelion._database import Steps, join, read, write
from perihelion._groups import Statement
from perihelion._native import Seal

Found = tuple[str, str, str, str | None, bytes]
"""A row of a checkpoint: thread, namespace, ID, the parent's ID and the sealed data."""

PAGE = 32
"""Checkpoints that a list reads first; each later page is twice as long."""

LONGEST_PAGE = 512


def place(config: RunnableConfig) -> tuple[str, str]:
    """Returns the thread and the namespace of a config."""
    configurable = config["configurable"]
    return str(configurable["thread_id"]), configurable.get("checkpoint_ns", "")


def config_of(thread_id: str, checkpoint_ns: str, checkpoint_id: str) -> RunnableConfig:
    configurable = {"thread_id": thread_id, "checkpoint_ns": checkpoint_ns, "checkpoint_id": checkpoint_id}
    return {"configurable": configurable}


class CheckpointSteps:
    """Reads and writes checkpoints, pending writes and the values of channels."""

    def __init__(self, serde: SerializerProtocol, seal: Seal, cache: Cache, strict: bool) -> None:
        self.serde = serde
        self.seal = seal
        self.cache = cache
        self.encoder = Encoder(serde, cache, strict)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Steps[RunnableConfig]:
        thread_id, checkpoint_ns = place(config)
        for is_whole in (False, True):
            held: list[tuple[Key, Version]] = []
            batch = self._statements(config, checkpoint, metadata, new_versions, held, is_whole)
            try:
                yield write(*batch)
            except RuntimeError as error:
                if is_whole or rows.MISSING_BASE not in str(error):
                    raise
            else:
                self.cache.store(held)
                break
        return config_of(thread_id, checkpoint_ns, checkpoint["id"])

    def _statements(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        held: list[tuple[Key, Version]],
        is_whole: bool,
    ) -> list[Statement]:
        thread_id, checkpoint_ns = place(config)
        values = checkpoint["channel_values"]
        batch: list[Statement] = []
        for channel, version in new_versions.items():
            if channel not in values or is_inline(values[channel]):
                continue
            key = (thread_id, checkpoint_ns, channel)
            row, newest = self.encoder.encode(key, version, values[channel], is_whole)
            batch.append(self._put_row(key, row))
            if newest is not None:
                held.append((key, newest))
        full = get_serializable_checkpoint_metadata(config, metadata)
        inline = {channel: value for channel, value in values.items() if is_inline(value)}
        body = {**checkpoint, "channel_values": inline}
        data = rows.pack_checkpoint(self.seal, self.serde, body, full)
        parent_id, run_id = get_checkpoint_id(config), full.get("run_id")
        run = None if run_id is None else str(run_id)
        batch.append((rows.PUT_CHECKPOINT, (thread_id, checkpoint_ns, checkpoint["id"], parent_id, run, data)))
        return batch

    def _put_row(self, key: Key, row: Row) -> Statement:
        data = row.sealed(self.seal)
        if row.base is None:
            return rows.PUT_VALUE, (*key, row.version, data)
        return rows.PUT_CHANGE, (*key, row.version, row.base, row.root, data)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
    ) -> Steps[None]:
        if writes:
            data = rows.pack_writes(self.seal, self.serde, writes, task_id, task_path)
            checkpoint_id = str(config["configurable"]["checkpoint_id"])
            yield join((rows.PUT_WRITES, (*place(config), checkpoint_id, data)))

    def get(self, config: RunnableConfig) -> Steps[CheckpointTuple | None]:
        thread_id, checkpoint_ns = place(config)
        where = "FROM perihelion_checkpoints WHERE thread_id = ?1 AND checkpoint_ns = ?2"
        checkpoint_id = get_checkpoint_id(config)
        values: tuple[str, ...] = (thread_id, checkpoint_ns)
        if checkpoint_id:
            where, values = f"{where} AND checkpoint_id = ?3", (*values, str(checkpoint_id))
        else:
            where = f"{where} ORDER BY checkpoint_id DESC LIMIT 1"
        (found,) = yield read((f"SELECT {rows.CHECKPOINT} {where}", values))
        if not found:
            return None
        return (yield from self._load((thread_id, checkpoint_ns, *found[0]), holds=True))

    def page(
        self,
        config: RunnableConfig | None,
        wanted: dict[str, Any] | None,
        before: RunnableConfig | None,
        after: Found | None,
        page: int,
    ) -> Steps[tuple[list[CheckpointTuple], Found | None]]:
        """Returns one page, newest first, and the last row that was read if there may be more."""
        conditions = ["1 = 1"]
        values: list[str | int] = []
        configurable = config["configurable"] if config else {}
        for column, value in (
            ("thread_id =", configurable.get("thread_id")),
            ("checkpoint_ns =", configurable.get("checkpoint_ns")),
            ("checkpoint_id =", configurable.get("checkpoint_id") or None),
            ("checkpoint_id <", get_checkpoint_id(before) if before else None),
        ):
            if value is not None:
                values.append(str(value))
                conditions.append(f"{column} ?{len(values)}")
        if after is not None:
            count = len(values)
            conditions.append(f"(checkpoint_id, thread_id, checkpoint_ns) < (?{count + 1}, ?{count + 2}, ?{count + 3})")
            values += [after[2], after[0], after[1]]
        (found,) = yield read(
            (
                f"SELECT thread_id, checkpoint_ns, {rows.CHECKPOINT} FROM perihelion_checkpoints "
                f"WHERE {' AND '.join(conditions)} "
                f"ORDER BY checkpoint_id DESC, thread_id DESC, checkpoint_ns DESC LIMIT ?{len(values) + 1}",
                [*values, page],
            )
        )
        chosen = cast("list[Found]", found)
        if wanted:
            chosen = [row for row in chosen if rows.contains(self._metadata(row), wanted)]
        loaded = yield from self.load(chosen)
        return loaded, cast(Found, found[-1]) if len(found) == page else None

    def _metadata(self, row: Found) -> Any:
        return self.serde.loads_typed(rows.unpack_checkpoint(self.seal, row[4])[1])

    def load(self, found: Iterable[Found]) -> Steps[list[CheckpointTuple]]:
        """Returns the checkpoints of rows with their values and writes."""
        loaded = []
        for row in found:
            loaded.append((yield from self._load(row)))
        return loaded

    def _load(self, found: Found, holds: bool = False) -> Steps[CheckpointTuple]:
        here, checkpoint_id, parent_id = found[:2], found[2], found[3]
        encoded = rows.unpack_checkpoint(self.seal, found[4])
        checkpoint = cast(Checkpoint, self.serde.loads_typed(encoded[0]))
        metadata = cast(CheckpointMetadata, self.serde.loads_typed(encoded[1]))
        values = checkpoint["channel_values"]
        stored = [(c, str(v)) for c, v in checkpoint["channel_versions"].items() if c not in values]
        batch: list[Statement] = [(rows.WRITES, (*here, checkpoint_id))]
        batch += [(rows.CHAIN, (*here, channel, version)) for channel, version in stored]
        has_sends = checkpoint["v"] < 4 and parent_id is not None
        if has_sends:
            batch.append((rows.WRITES, (*here, parent_id)))
        answers = yield read(*batch)
        for (channel, version), answer in zip(stored, answers[1:], strict=False):
            if not answer:
                continue
            values[channel], newest = self.encoder.decode(self.chain(channel, version, answer))
            if holds and newest is not None:
                self.cache.store([((*here, channel), newest)])
        if has_sends:
            self._add_sends(checkpoint, answers[-1])
        parent = config_of(*here, parent_id) if parent_id else None
        pending = rows.unpack_writes(self.seal, self.serde, answers[0])
        return CheckpointTuple(config_of(*here, checkpoint_id), checkpoint, metadata, parent, pending)

    def chain(self, channel: str, version: str, answer: Any) -> list[Row]:
        """Returns the rows that a value follows from, oldest first."""
        root = next(row[2] for row in answer if row[0] == version)
        return [
            Row(channel, version, None, root, *row)
            for row in self.seal.open_chain(version, answer, f"value:{channel}")
        ]

    def _add_sends(self, checkpoint: Checkpoint, answer: Any) -> None:
        """Adds the sends that checkpoints before version 4 kept as writes of their parent."""
        sends = [write[2] for write in rows.unpack_writes(self.seal, self.serde, answer, {TASKS})]
        if sends:
            versions = checkpoint["channel_versions"]
            checkpoint["channel_values"][TASKS] = sends
            versions[TASKS] = max(versions.values()) if versions else next_version(None)


def next_version(current: str | int | float | None) -> str | int | float:
    """Returns the version after another: a counter and random digits, since forks count alike.

    Versions of other savers continue in their format: numbers as numbers, texts in their width.
    """
    import secrets

    if isinstance(current, (int, float)):
        return int(current) + 1
    counter = current.partition(".")[0] if current else "0000000000"
    return f"{int(counter) + 1:0{len(counter)}}.{secrets.token_hex(6)}"
