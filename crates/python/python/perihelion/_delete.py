"""Deleting, pruning and copying threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langgraph.checkpoint.serde.types import TASKS

from perihelion import _rows as rows
from perihelion._database import Steps, read, write
from perihelion._groups import Statement
from perihelion._steps import CheckpointSteps

TABLES = ("perihelion_checkpoints", "perihelion_values", "perihelion_writes", "perihelion_effects")

STRATEGIES = ("keep_latest", "delete", "delete_all")

Place = tuple[str, str]


class DeleteSteps(CheckpointSteps):
    """Steps that remove what no checkpoint needs any more."""

    def delete_thread(self, thread_id: str) -> Steps[None]:
        self.cache.drop([thread_id])
        yield write(*((f"DELETE FROM {table} WHERE thread_id = ?1", (thread_id,)) for table in TABLES))
        self.cache.drop([thread_id])

    def delete_for_runs(self, run_ids: Sequence[str]) -> Steps[None]:
        places: dict[Place, list[str]] = {}
        for run_id in run_ids:
            sql = "SELECT thread_id, checkpoint_ns, checkpoint_id FROM perihelion_checkpoints WHERE run_id = ?1"
            (found,) = yield read((sql, (str(run_id),)))
            for thread_id, checkpoint_ns, checkpoint_id in found:
                places.setdefault((thread_id, checkpoint_ns), []).append(checkpoint_id)
        for place, ids in places.items():
            yield from self._remove(place, ids)

    def prune(self, thread_ids: Sequence[str], strategy: str) -> Steps[None]:
        if strategy not in STRATEGIES:
            raise ValueError(f"unknown strategy, pass keep_latest or delete: {strategy}")
        for thread_id in thread_ids:
            if strategy != "keep_latest":
                yield from self.delete_thread(thread_id)
                continue
            sql = "SELECT DISTINCT checkpoint_ns FROM perihelion_checkpoints WHERE thread_id = ?1"
            (found,) = yield read((sql, (thread_id,)))
            for (checkpoint_ns,) in found:
                yield from self._keep_latest((thread_id, checkpoint_ns))

    def _keep_latest(self, place: Place) -> Steps[None]:
        (found,) = yield read(
            (
                f"SELECT {rows.CHECKPOINT} FROM perihelion_checkpoints "
                "WHERE thread_id = ?1 AND checkpoint_ns = ?2 ORDER BY checkpoint_id DESC",
                place,
            )
        )
        parents = {checkpoint_id: (parent_id, data) for checkpoint_id, parent_id, data in found}
        if not parents:
            return
        head = next(iter(parents))
        kept = [head]
        body, metadata = self._opened(parents[head][1])
        missing = set(metadata.get("counters_since_delta_snapshot") or ())
        missing -= yield from self._populated(place, body)
        parent_id = parents[head][0]
        if body["v"] < 4 and parent_id is not None:
            (writes,) = yield read((rows.WRITES, (*place, parent_id)))
            if rows.unpack_writes(self.seal, self.serde, writes, {TASKS}):
                kept.append(parent_id)
        # The value of a DeltaChannel follows from the writes since its last snapshot, so those checkpoints stay.
        while missing and parent_id in parents:
            if parent_id not in kept:
                kept.append(parent_id)
            parent_id, data = parents[parent_id]
            body, _ = self._opened(data)
            missing -= yield from self._populated(place, body)
        yield from self._remove(place, [one for one in parents if one not in set(kept)])

    def _opened(self, data: bytes) -> tuple[Any, Any]:
        body, metadata = rows.unpack_checkpoint(self.seal, data)
        return self.serde.loads_typed(body), self.serde.loads_typed(metadata)

    def _populated(self, place: Place, body: Any) -> Steps[set[str]]:
        """Returns the channels of a checkpoint that have a stored value."""
        found = set(body["channel_values"])
        others = [(c, v) for c, v in body["channel_versions"].items() if c not in found]
        answers = (yield read(*((rows.VALUE, (*place, c, str(v))) for c, v in others))) if others else []
        return found | {c for (c, _), answer in zip(others, answers, strict=True) if answer}

    def _remove(self, place: Place, ids: Sequence[str]) -> Steps[None]:
        """Removes checkpoints, their writes, and the values that no other checkpoint needs."""
        while ids:
            try:
                yield from self._remove_now(place, ids)
                return
            except RuntimeError as error:
                # A run has stored another checkpoint meanwhile, which can need one of the values.
                if rows.MISSING_BASE not in str(error):
                    raise

    def _remove_now(self, place: Place, ids: Sequence[str]) -> Steps[None]:
        self.cache.drop([place[0]])
        where = "WHERE thread_id = ?1 AND checkpoint_ns = ?2"
        batch: list[Statement] = []
        for one in ids:
            values = (*place, one)
            batch.append((f"DELETE FROM perihelion_writes {where} AND checkpoint_id = ?3", values))
            batch.append((f"DELETE FROM perihelion_checkpoints {where} AND checkpoint_id = ?3", values))
            batch.append(("DELETE FROM perihelion_effects WHERE thread_id = ?1 AND checkpoint_id = ?2", (place[0], one)))
            batch.append((f"UPDATE perihelion_checkpoints SET parent_id = NULL {where} AND parent_id = ?3", values))
        checkpoints, stored = yield read(
            (f"SELECT checkpoint_id, data FROM perihelion_checkpoints {where}", place),
            (f"SELECT channel, version, base FROM perihelion_values {where}", place),
        )
        gone = set(ids)
        bases = {(channel, version): base for channel, version, base in stored}
        needed: set[tuple[str, str]] = set()
        for checkpoint_id, data in checkpoints:
            if checkpoint_id in gone:
                continue
            for channel, version in self._opened(data)[0]["channel_versions"].items():
                row = (channel, str(version))
                while row in bases and row not in needed:
                    needed.add(row)
                    row = (channel, bases[row] or "")
        sql = f"DELETE FROM perihelion_values {where} AND channel = ?3 AND version = ?4"
        batch += [(sql, (*place, *row)) for row in bases if row not in needed]
        remaining = sum(checkpoint_id not in gone for checkpoint_id, _ in checkpoints)
        yield write(*batch, (rows.EXPECT_CHECKPOINTS, (*place, remaining)))
        self.cache.drop([place[0]])

    def copy_thread(self, source: str, target: str) -> Steps[None]:
        batch: list[Statement] = []
        for table, columns, order in (
            (TABLES[0], "checkpoint_ns, checkpoint_id, parent_id, run_id, data", ""),
            (TABLES[1], "checkpoint_ns, channel, version, base, root, data", ""),
            (TABLES[2], "checkpoint_ns, checkpoint_id, data", "ORDER BY position"),
            (TABLES[3], "checkpoint_ns, name, occurrence, checkpoint_id, attempt, intent, outcome", ""),
        ):
            batch.append(
                (
                    f"INSERT INTO {table} (thread_id, {columns}) SELECT CAST(?2 AS TEXT), {columns} FROM {table} "
                    f"WHERE thread_id = ?1 {order} ON CONFLICT DO NOTHING",
                    (source, target),
                )
            )
        yield write(*batch)
