"""Copies the databases of PostgresSaver and SqliteSaver, with the whole history.

    python -m perihelion copy postgresql://…/old agents.db

IDs, versions, parents and pending writes stay as they are. A copy that was interrupted continues when it is started
again. No type that the data names is loaded.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import ormsgpack
from langgraph.checkpoint.base import CheckpointMetadata
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from perihelion import _rows as rows
from perihelion._channels import PLAIN
from perihelion._database import Connection
from perihelion._history import HistorySteps
from perihelion._steps import config_of
from perihelion.saver import PerihelionSaver

OPTIONS = ormsgpack.OPT_NON_STR_KEYS | ormsgpack.OPT_PASSTHROUGH_SUBCLASS


@dataclass
class Copied:
    """How much a copy wrote."""

    threads: int = 0
    checkpoints: int = 0


@dataclass
class Opaque:
    """A stored value that the copy does not read."""

    kind: str
    data: bytes


class RawSerializer(SerializerProtocol):
    """Reads the structure of values, and leaves objects in it as the bytes that they are."""

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        kind, body = data
        if kind != PLAIN:
            return Opaque(kind, body)
        value = ormsgpack.unpackb(body, ext_hook=ormsgpack.Ext, option=ormsgpack.OPT_NON_STR_KEYS)
        return value if self._is_same(value, body) else Opaque(kind, body)

    def _is_same(self, value: Any, body: bytes) -> bool:
        try:
            return ormsgpack.packb(value, option=OPTIONS) == body
        except (TypeError, ValueError):
            return False

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        if isinstance(obj, Opaque):
            return obj.kind, obj.data
        if obj is None:
            return "null", b""
        return PLAIN, ormsgpack.packb(obj, option=OPTIONS)


def _json_row(value: Any) -> Any:
    """Keeps a value of an older SqliteSaver in the form in which its serialiser makes objects of it."""
    return Opaque("json", json.dumps(value).encode()) if isinstance(value, (dict, list)) else value


def _raw(serde: SerializerProtocol | None) -> SerializerProtocol:
    """Returns what reads or writes like a serialiser, but leaves objects alone."""
    if isinstance(serde, EncryptedSerializer):
        return EncryptedSerializer(serde.cipher, RawSerializer())
    return RawSerializer()


class _Source:
    """A database of another saver."""

    def __init__(self, address: str, serde: SerializerProtocol | None) -> None:
        self.connection = Connection(address, read_only=True)
        self.serde = _raw(serde)
        self.is_postgres = self.connection.is_postgres

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.connection.native.run([(sql, values)], False)[0]

    def threads(self) -> list[str]:
        return [row[0] for row in self.query("SELECT DISTINCT thread_id FROM checkpoints ORDER BY thread_id")]

    def checkpoints(self, thread_id: str) -> Iterator[tuple[str, str, str | None, dict[str, Any], dict[str, Any]]]:
        """Yields namespace, ID, parent, checkpoint with values, and metadata; oldest first."""
        ids = self.query(
            "SELECT checkpoint_ns, checkpoint_id FROM checkpoints WHERE thread_id = ?1 "
            "ORDER BY checkpoint_ns, checkpoint_id",
            thread_id,
        )
        columns = "NULL, CAST(checkpoint AS TEXT), CAST(metadata AS TEXT)"
        if not self.is_postgres:
            columns = "type, checkpoint, metadata"
        for namespace, checkpoint_id in ids:
            ((parent_id, kind, data, metadata),) = self.query(
                f"SELECT parent_checkpoint_id, {columns} FROM checkpoints "
                "WHERE thread_id = ?1 AND checkpoint_ns = ?2 AND checkpoint_id = ?3",
                thread_id,
                namespace,
                checkpoint_id,
            )
            if self.is_postgres:
                checkpoint = json.loads(data)
                values = {**(checkpoint.get("channel_values") or {}), **self._blobs(thread_id, namespace, checkpoint)}
                checkpoint["channel_values"] = values
            elif kind == "json":
                checkpoint = json.loads(data)
                values = checkpoint.get("channel_values") or {}
                checkpoint["channel_values"] = {channel: _json_row(value) for channel, value in values.items()}
            else:
                checkpoint = self.serde.loads_typed((kind, data))
            if isinstance(checkpoint, Opaque):
                raise ValueError(
                    f"a checkpoint cannot be read, pass the serialiser that wrote it as serde: {checkpoint_id}"
                )
            yield namespace, checkpoint_id, parent_id, checkpoint, json.loads(metadata or "{}")

    def _blobs(self, thread_id: str, namespace: str, checkpoint: dict[str, Any]) -> dict[str, Any]:
        values = {}
        for channel, version in checkpoint["channel_versions"].items():
            found = self.query(
                "SELECT type, blob FROM checkpoint_blobs "
                "WHERE thread_id = ?1 AND checkpoint_ns = ?2 AND channel = ?3 AND version = ?4 AND type <> 'empty'",
                thread_id,
                namespace,
                channel,
                str(version),
            )
            if found:
                values[channel] = self.serde.loads_typed((found[0][0], found[0][1] or b""))
        return values

    def writes(self, thread_id: str, namespace: str, checkpoint_id: str) -> dict[tuple[str, str], list[tuple[Any, ...]]]:
        """Returns pending writes by task and path: index, channel and value."""
        table, value = ("checkpoint_writes", "blob") if self.is_postgres else ("writes", "value")
        found = self.query(
            f"SELECT * FROM {table} WHERE thread_id = ?1 AND checkpoint_ns = ?2 AND checkpoint_id = ?3 ORDER BY task_id, idx",
            thread_id,
            namespace,
            checkpoint_id,
        )
        if not found:
            return {}
        names = self._columns(table)
        tasks: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
        for row in found:
            one = dict(zip(names, row, strict=True))
            written = (one["idx"], one["channel"], self.serde.loads_typed((one["type"], one[value] or b"")))
            tasks.setdefault((one["task_id"], one.get("task_path") or ""), []).append(written)
        return tasks

    def _columns(self, table: str) -> list[str]:
        sql = "SELECT name FROM pragma_table_info(?1) ORDER BY cid"
        if self.is_postgres:
            sql = (
                "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(?1) "
                "AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
            )
        return [row[0] for row in self.query(sql, table)]


def copy_from(
    source: str,
    saver: PerihelionSaver,
    *,
    thread_ids: Iterable[str] | None = None,
    serde: SerializerProtocol | None = None,
) -> Copied:
    """Copies threads of a PostgresSaver or SqliteSaver into a saver and returns how many.

    Args:
        source: The connection string or the path that the other saver was opened with. Close a SqliteSaver first.
        saver: Where to copy to. Checkpoints that it has already are skipped.
        thread_ids: Which threads; all by default.
        serde: The serialiser of the source, if it is an EncryptedSerializer.
    """
    copied = Copied()
    origin = _Source(source, serde)
    try:
        steps = HistorySteps(_raw(saver.serde), saver._seal, saver._cache, strict=False)
        saver._prepare()
        for thread_id in origin.threads() if thread_ids is None else thread_ids:
            _copy_thread(origin, thread_id, saver, steps, copied)
            saver._cache.drop([thread_id])
            copied.threads += 1
    finally:
        origin.connection.close()
    return copied


async def acopy_from(source: str, saver: PerihelionSaver, **options: Any) -> Copied:
    """As `copy_from`, on another thread."""
    return await asyncio.to_thread(copy_from, source, saver, **options)


def _copy_thread(
    origin: _Source, thread_id: str, saver: PerihelionSaver, steps: HistorySteps, copied: Copied
) -> None:
    connection = saver._connection
    sql = "SELECT checkpoint_ns, checkpoint_id FROM perihelion_checkpoints WHERE thread_id = ?1"
    present = set(connection.native.run([(sql, (thread_id,))], False)[0])
    stored: set[tuple[str, str, str]] = set()
    for namespace, checkpoint_id, parent_id, checkpoint, metadata in origin.checkpoints(thread_id):
        versions = checkpoint["channel_versions"]
        new = {c: v for c, v in versions.items() if (namespace, c, str(v)) not in stored}
        stored.update((namespace, channel, str(version)) for channel, version in new.items())
        if (namespace, checkpoint_id) in present:
            continue
        batch = []
        for (task_id, path), writes in origin.writes(thread_id, namespace, checkpoint_id).items():
            data = _packed(steps, task_id, path, writes)
            batch.append((rows.PUT_WRITES, (thread_id, namespace, checkpoint_id, data)))
        if batch:
            connection.native.run(batch, True)
        config = config_of(thread_id, namespace, cast(str, parent_id))
        checkpoint = {**checkpoint, "id": checkpoint_id}
        connection.run(steps.put(config, cast(Any, checkpoint), cast(CheckpointMetadata, metadata), new))
        copied.checkpoints += 1


def _packed(steps: HistorySteps, task_id: str, path: str, writes: Sequence[tuple[Any, ...]]) -> bytes:
    packed = [(index, channel, *steps.serde.dumps_typed(value)) for index, channel, value in writes]
    return steps.seal.seal(ormsgpack.packb((task_id, path, False, packed)), "writes")
