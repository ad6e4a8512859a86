"""What the rows of checkpoints and of pending writes contain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import ormsgpack
from langgraph.checkpoint.base import WRITES_IDX_MAP, writes_sort_key
from langgraph.checkpoint.serde.base import SerializerProtocol

from perihelion._native import Seal

MIGRATIONS = [
    [
        """CREATE TABLE IF NOT EXISTS perihelion_checkpoints (
            thread_id {TEXT} NOT NULL,
            checkpoint_ns {TEXT} NOT NULL,
            checkpoint_id {TEXT} NOT NULL,
            parent_id {TEXT},
            run_id {TEXT},
            data {BYTES} NOT NULL,
            PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
        )""",
        """CREATE INDEX IF NOT EXISTS perihelion_checkpoints_run
            ON perihelion_checkpoints (run_id) WHERE run_id IS NOT NULL""",
        """CREATE TABLE IF NOT EXISTS perihelion_values (
            thread_id {TEXT} NOT NULL,
            checkpoint_ns {TEXT} NOT NULL,
            channel {TEXT} NOT NULL,
            version {TEXT} NOT NULL,
            base {TEXT},
            root {TEXT} NOT NULL,
            data {BYTES} NOT NULL,
            PRIMARY KEY (thread_id, checkpoint_ns, channel, version),
            CONSTRAINT perihelion_base_exists CHECK (root = version OR base IS NOT NULL)
        )""",
        """CREATE TABLE IF NOT EXISTS perihelion_writes (
            position {SERIAL},
            thread_id {TEXT} NOT NULL,
            checkpoint_ns {TEXT} NOT NULL,
            checkpoint_id {TEXT} NOT NULL,
            data {BYTES} NOT NULL
        )""",
        """CREATE INDEX IF NOT EXISTS perihelion_writes_place
            ON perihelion_writes (thread_id, checkpoint_ns, checkpoint_id)""",
        "ALTER TABLE perihelion_checkpoints ALTER COLUMN data SET STORAGE EXTERNAL",
        "ALTER TABLE perihelion_values ALTER COLUMN data SET STORAGE EXTERNAL",
        "ALTER TABLE perihelion_writes ALTER COLUMN data SET STORAGE EXTERNAL",
    ],
    [
        """CREATE TABLE IF NOT EXISTS perihelion_effects (
            thread_id {TEXT} NOT NULL,
            checkpoint_ns {TEXT} NOT NULL,
            name {TEXT} NOT NULL,
            occurrence {INTEGER} NOT NULL,
            checkpoint_id {TEXT} NOT NULL,
            attempt {TEXT} NOT NULL,
            intent {BYTES} NOT NULL,
            outcome {BYTES},
            PRIMARY KEY (thread_id, checkpoint_ns, name, occurrence)
        )""",
        "ALTER TABLE perihelion_effects ALTER COLUMN intent SET STORAGE EXTERNAL",
        "ALTER TABLE perihelion_effects ALTER COLUMN outcome SET STORAGE EXTERNAL",
    ],
]

CHECKPOINT = "checkpoint_id, parent_id, data"

PUT_CHECKPOINT = """INSERT INTO perihelion_checkpoints
    (thread_id, checkpoint_ns, checkpoint_id, parent_id, run_id, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id)
    DO UPDATE SET parent_id = excluded.parent_id, run_id = excluded.run_id, data = excluded.data"""

PUT_VALUE = """INSERT INTO perihelion_values
    (thread_id, checkpoint_ns, channel, version, root, data) VALUES (?1, ?2, ?3, ?4, ?4, ?5)
    ON CONFLICT (thread_id, checkpoint_ns, channel, version)
    DO UPDATE SET base = NULL, root = excluded.root, data = excluded.data"""

# A base that was deleted meanwhile violates the constraint, and the step is stored again with whole values.
PUT_CHANGE = """INSERT INTO perihelion_values
    (thread_id, checkpoint_ns, channel, version, base, root, data) VALUES (?1, ?2, ?3, ?4,
        (SELECT version FROM perihelion_values
         WHERE thread_id = ?1 AND checkpoint_ns = ?2 AND channel = ?3 AND version = ?5), ?6, ?7)
    ON CONFLICT (thread_id, checkpoint_ns, channel, version)
    DO UPDATE SET base = excluded.base, root = excluded.root, data = excluded.data"""

PUT_WRITES = """INSERT INTO perihelion_writes (thread_id, checkpoint_ns, checkpoint_id, data)
    VALUES (?1, ?2, ?3, ?4)"""

VALUE = """SELECT version FROM perihelion_values
    WHERE thread_id = ?1 AND checkpoint_ns = ?2 AND channel = ?3 AND version = ?4"""

# A value with the rows that it follows from; versions of a chain are ordered as texts.
CHAIN = """SELECT version, base, root, data FROM perihelion_values
    WHERE thread_id = ?1 AND checkpoint_ns = ?2 AND channel = ?3 AND version <= ?4 AND version >= (
        SELECT root FROM perihelion_values
        WHERE thread_id = ?1 AND checkpoint_ns = ?2 AND channel = ?3 AND version = ?4)"""

WRITES = """SELECT data FROM perihelion_writes
    WHERE thread_id = ?1 AND checkpoint_ns = ?2 AND checkpoint_id = ?3 ORDER BY position"""

# Violates the constraint if the namespace has another number of checkpoints than expected.
EXPECT_CHECKPOINTS = """INSERT INTO perihelion_values (thread_id, checkpoint_ns, channel, version, root, data)
    SELECT thread_id, checkpoint_ns, '', '', 'another number', data FROM perihelion_checkpoints
    WHERE thread_id = ?1 AND checkpoint_ns = ?2
        AND (SELECT count(*) FROM perihelion_checkpoints WHERE thread_id = ?1 AND checkpoint_ns = ?2) <> ?3 LIMIT 1"""

MISSING_BASE = "perihelion_base_exists"

Write = tuple[str, str, Any]
"""Task, channel and value."""


def pack_checkpoint(seal: Seal, serde: SerializerProtocol, body: Any, metadata: Any) -> bytes:
    return seal.seal(ormsgpack.packb((serde.dumps_typed(body), serde.dumps_typed(metadata))), "checkpoint")


def unpack_checkpoint(seal: Seal, data: bytes) -> tuple[tuple[str, bytes], tuple[str, bytes]]:
    """Returns the body and the metadata, both still encoded."""
    body, metadata = ormsgpack.unpackb(seal.open(data, "checkpoint"))
    return tuple(body), tuple(metadata)


def pack_writes(
    seal: Seal, serde: SerializerProtocol, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
) -> bytes:
    """Packs the writes of one call. Special writes replace older ones of their index, others do not."""
    replaces = all(channel in WRITES_IDX_MAP for channel, _ in writes)
    rows = [
        (WRITES_IDX_MAP.get(channel, index), channel, *serde.dumps_typed(value))
        for index, (channel, value) in enumerate(writes)
    ]
    return seal.seal(ormsgpack.packb((task_id, task_path, replaces, rows)), "writes")


def unpack_writes(
    seal: Seal, serde: SerializerProtocol, rows: Iterable[tuple[bytes]], channels: set[str] | None = None
) -> list[Write]:
    """Returns pending writes in the order in which a step applies them; of some channels alone if given."""
    found: dict[tuple[str, int], tuple[str, str, str, bytes]] = {}
    for (data,) in rows:
        task_id, task_path, replaces, writes = ormsgpack.unpackb(seal.open(data, "writes"))
        for index, channel, kind, value in writes:
            if replaces or (task_id, index) not in found:
                found[task_id, index] = (task_path, channel, kind, value)
    ordered = sorted(found.items(), key=lambda item: writes_sort_key(item[1][0], *item[0]))
    return [
        (task_id, channel, serde.loads_typed((kind, value)))
        for (task_id, _), (_, channel, kind, value) in ordered
        if channels is None or channel in channels
    ]


def contains(value: Any, wanted: Any) -> bool:
    """Whether a value contains another, as JSON does in PostgreSQL (`@>`)."""
    if isinstance(wanted, Mapping):
        return isinstance(value, Mapping) and all(
            key in value and contains(value[key], item) for key, item in wanted.items()
        )
    if isinstance(wanted, (list, tuple)):
        return isinstance(value, (list, tuple)) and all(any(contains(one, item) for one in value) for item in wanted)
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    return bool(value == wanted)
