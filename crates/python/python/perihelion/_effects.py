"""The journal of effects: an intent is stored before a function runs, its outcome afterwards."""

from __future__ import annotations

import hashlib
import json
import uuid
from dataclasses import dataclass, replace
from typing import Any

import ormsgpack
from langgraph.checkpoint.serde.base import SerializerProtocol

from perihelion import _rows as rows
from perihelion._database import Steps, read, write
from perihelion._groups import Statement
from perihelion._native import Seal
from perihelion.errors import EffectDiverged

_KEYS = uuid.UUID("5b0f3b52-1f7c-4a58-9d4e-0f3f7a0d6c11")

_WHERE = "WHERE thread_id = ?1 AND checkpoint_ns = ?2 AND name = ?3 AND occurrence = ?4"

_HAS_CHECKPOINT = """SELECT 1 FROM perihelion_checkpoints
    WHERE thread_id = ?1 AND checkpoint_ns = ?2 AND checkpoint_id = ?3"""

_CHECKPOINT = """SELECT parent_id, data FROM perihelion_checkpoints
    WHERE thread_id = ?1 AND checkpoint_ns = '' AND checkpoint_id = ?2"""

_CHILDREN = "SELECT data FROM perihelion_checkpoints WHERE thread_id = ?1 AND checkpoint_ns = '' AND parent_id = ?2"

_OF_CHECKPOINT = """SELECT checkpoint_ns, attempt, intent, outcome FROM perihelion_effects
    WHERE thread_id = ?1 AND checkpoint_id = ?2 AND name = ?3 AND occurrence = ?4"""

_FIND = f"SELECT attempt, intent, outcome FROM perihelion_effects {_WHERE}"

_BEGIN = """INSERT INTO perihelion_effects
    (thread_id, checkpoint_ns, name, occurrence, checkpoint_id, attempt, intent) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
    ON CONFLICT DO NOTHING RETURNING attempt"""

# Each names the attempt that it is about: the outcome of an attempt that another one replaced is refused.
_TAKE_OVER = f"""UPDATE perihelion_effects SET attempt = ?6, intent = ?7
    {_WHERE} AND attempt = ?5 AND outcome IS NULL RETURNING attempt"""

_NOTE = f"""UPDATE perihelion_effects SET intent = ?6
    {_WHERE} AND attempt = ?5 AND outcome IS NULL RETURNING attempt"""

_FINISH = f"""UPDATE perihelion_effects SET outcome = ?6
    {_WHERE} AND attempt = ?5 AND outcome IS NULL RETURNING attempt"""

_WITHDRAW = f"DELETE FROM perihelion_effects {_WHERE} AND attempt = ?5 AND outcome IS NULL RETURNING attempt"

_LIST = """SELECT checkpoint_ns, name, occurrence, checkpoint_id, attempt, intent, outcome FROM perihelion_effects
    WHERE thread_id = ?1 ORDER BY checkpoint_id, checkpoint_ns, name, occurrence"""


@dataclass(frozen=True)
class Place:
    """Where an effect happens: the task of a thread that it belongs to, its name there, and which of that name."""

    thread_id: str
    checkpoint_ns: str
    name: str
    occurrence: int

    @property
    def values(self) -> tuple[str, str, str, int]:
        return self.thread_id, self.checkpoint_ns, self.name, self.occurrence

    @property
    def key(self) -> str:
        """The same text for every attempt, and another one for every other effect."""
        return str(uuid.uuid5(_KEYS, json.dumps(self.values)))


@dataclass(frozen=True)
class Started:
    """What a task started from: its checkpoint (namespace and ID), and that of the outermost graph."""

    checkpoint: tuple[str, str]
    root_id: str
    is_sent: bool


@dataclass(frozen=True)
class Entry:
    """A row of the journal."""

    attempt: str
    is_question: bool
    fingerprint: str
    note: str
    index: int
    is_done: bool = False
    outcome: Any = None


@dataclass(frozen=True)
class Effect:
    """An effect or a question of a thread.

    Attributes:
        name: Its name in the node.
        key: Its idempotency key.
        checkpoint_ns: The namespace of its task: the node and the ID of the task, after those of outer graphs.
        checkpoint_id: The checkpoint of the outermost graph that its task started from.
        is_question: Whether it was asked by `ask`.
        is_done: Whether its outcome is recorded.
        outcome: The outcome or the answer.
        error: Why the outcome of an effect is not known, if its function failed.
    """

    name: str
    key: str
    checkpoint_ns: str
    checkpoint_id: str
    is_question: bool
    is_done: bool
    outcome: Any
    error: str


def _nodes(checkpoint_ns: str) -> list[str]:
    """Returns the names of the nodes in a namespace, without the IDs of their tasks."""
    return [part.partition(":")[0] for part in checkpoint_ns.split("|")]


def fingerprint(arguments: Any) -> str:
    """Returns a digest of arguments that are plain JSON, else an empty text."""
    try:
        text = json.dumps(arguments, sort_keys=True)
    except (TypeError, ValueError):
        return ""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class EffectSteps:
    """Reads and writes the journal."""

    def __init__(self, serde: SerializerProtocol, seal: Seal) -> None:
        self._serde = serde
        self._seal = seal

    def begin(self, place: Place, started: Started, entry: Entry) -> Steps[tuple[Place, Entry] | None]:
        """Stores an intent and returns it, or the entry that is there already, with its place.

        Returns nothing while the checkpoint that the task started from is not stored: after a crash the task would
        start from an older one, and would not find its journal.
        """
        thread_id = place.thread_id
        found, checkpoints, roots = yield read(
            (_FIND, place.values),
            (_HAS_CHECKPOINT, (thread_id, *started.checkpoint)),
            (_CHECKPOINT, (thread_id, started.root_id)),
        )
        if found:
            return place, self._entry(place, *found[0])
        if not checkpoints:
            return None
        if roots and (earlier := (yield from self._earlier(place, roots[0], started.is_sent))) is not None:
            return earlier
        values = (*place.values, started.root_id, entry.attempt, self._packed(place, entry))
        (begun,) = yield write((_BEGIN, values))
        if begun:
            return place, entry
        (found,) = yield read((_FIND, place.values))
        return (place, self._entry(place, *found[0])) if found else None

    def _earlier(self, place: Place, root: tuple[Any, ...], is_sent: bool) -> Steps[tuple[Place, Entry] | None]:
        """Returns the entry of the same task before the run was resumed with the ID of its newest checkpoint.

        LangGraph then forks the checkpoint, and the task gets a new ID. A checkpoint whose step was completed is
        different: a run from there is time travel, and has effects of its own.
        """
        parent_id, data = root
        while parent_id is not None and self._source(data) == "fork":
            at = (place.thread_id, parent_id)
            children, effects, parents = yield read(
                (_CHILDREN, at), (_OF_CHECKPOINT, (*at, place.name, place.occurrence)), (_CHECKPOINT, at)
            )
            if any(self._source(child) != "fork" for (child,) in children):
                return None
            same = [row for row in effects if _nodes(row[0]) == _nodes(place.checkpoint_ns)]
            if same and (is_sent or len(same) > 1):
                raise EffectDiverged(
                    "a run that was resumed with a checkpoint ID has new tasks, and it is not known which of them an "
                    f"effect belongs to; resume runs with the ID of their thread alone: {place.name}"
                )
            if same:
                there = replace(place, checkpoint_ns=same[0][0])
                return there, self._entry(there, *same[0][1:])
            parent_id, data = parents[0] if parents else (None, b"")
        return None

    def _source(self, data: bytes) -> Any:
        metadata = self._serde.loads_typed(rows.unpack_checkpoint(self._seal, data)[1])
        return metadata.get("source")

    def take_over(self, place: Place, before: Entry, after: Entry) -> Steps[bool]:
        """Replaces an attempt that ended without an outcome."""
        return (yield from self._change(_TAKE_OVER, place, before, after.attempt, self._packed(place, after)))

    def note(self, place: Place, entry: Entry, text: str) -> Steps[bool]:
        """Adds to an intent why its outcome is not known."""
        return (yield from self._change(_NOTE, place, entry, self._packed(place, replace(entry, note=text))))

    def finish(self, place: Place, entry: Entry, outcome: Any) -> Steps[bool]:
        data = self._seal.seal(ormsgpack.packb(self._serde.dumps_typed(outcome)), f"outcome:{place.name}")
        if (yield from self._change(_FINISH, place, entry, data)):
            return True
        # A statement whose connection is lost during its commit is run again, and then changes nothing.
        (found,) = yield read((_FIND, place.values))
        return bool(found) and (found[0][0], found[0][2]) == (entry.attempt, data)

    def withdraw(self, place: Place, entry: Entry) -> Steps[bool]:
        return (yield from self._change(_WITHDRAW, place, entry))

    def effects(self, thread_id: str) -> Steps[list[Effect]]:
        effects = []
        for place, checkpoint_id, entry in (yield from self._all(thread_id)):
            fields = (entry.is_question, entry.is_done, entry.outcome, entry.note)
            effects.append(Effect(place.name, place.key, place.checkpoint_ns, checkpoint_id, *fields))
        return effects

    def settle(self, thread_id: str, key: str, outcome: Any) -> Steps[None]:
        """Records what a person found out about an effect without an outcome."""
        place, entry = yield from self._open(thread_id, key)
        yield from self.finish(place, entry, outcome)

    def withdraw_key(self, thread_id: str, key: str) -> Steps[None]:
        """Removes an effect that did not happen."""
        place, entry = yield from self._open(thread_id, key)
        yield from self.withdraw(place, entry)

    def _open(self, thread_id: str, key: str) -> Steps[tuple[Place, Entry]]:
        for place, _, entry in (yield from self._all(thread_id)):
            if place.key == key and not entry.is_done:
                return place, entry
        raise KeyError(f"the thread has no effect without an outcome under this key; list them with effects(): {key}")

    def _all(self, thread_id: str) -> Steps[list[tuple[Place, str, Entry]]]:
        (found,) = yield read((_LIST, (thread_id,)))
        rows = [(Place(thread_id, *row[:3]), row[3], row[4:]) for row in found]
        return [(place, checkpoint_id, self._entry(place, *rest)) for place, checkpoint_id, rest in rows]

    def _change(self, sql: str, place: Place, entry: Entry, *values: str | bytes) -> Steps[bool]:
        statement: Statement = (sql, (*place.values, entry.attempt, *values))
        (changed,) = yield write(statement)
        return bool(changed)

    def _packed(self, place: Place, entry: Entry) -> bytes:
        fields = (entry.is_question, entry.fingerprint, entry.note, entry.index)
        return self._seal.seal(ormsgpack.packb(fields), f"intent:{place.name}")

    def _entry(self, place: Place, attempt: str, intent: bytes, outcome: bytes | None) -> Entry:
        entry = Entry(attempt, *ormsgpack.unpackb(self._seal.open(intent, f"intent:{place.name}")))
        if outcome is None:
            return entry
        kind, data = ormsgpack.unpackb(self._seal.open(outcome, f"outcome:{place.name}"))
        return replace(entry, is_done=True, outcome=self._serde.loads_typed((kind, data)))
