"""What DeltaChannels contributed along a chain of checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import DeltaChannelHistory, get_checkpoint_id

from perihelion import _rows as rows
from perihelion._database import Steps, read
from perihelion._delete import DeleteSteps
from perihelion._steps import place

PAGE = 256
"""Ancestors that are read at once."""


class HistorySteps(DeleteSteps):
    """All steps of the saver."""

    def history(self, config: RunnableConfig, channels: Sequence[str]) -> Steps[Mapping[str, DeltaChannelHistory]]:
        if not channels:
            return {}
        here = place(config)
        collected: dict[str, list[list[rows.Write]]] = {channel: [] for channel in channels}
        seeds: dict[str, Any] = {}
        cursor = yield from self._parent(here, get_checkpoint_id(config))
        while cursor is not None and len(seeds) < len(collected):
            (page,) = yield read(
                (
                    f"SELECT {rows.CHECKPOINT} FROM perihelion_checkpoints WHERE thread_id = ?1 AND checkpoint_ns = ?2 "
                    f"AND checkpoint_id <= ?3 ORDER BY checkpoint_id DESC LIMIT {PAGE}",
                    (*here, cursor),
                )
            )
            ancestors = {checkpoint_id: (parent_id, data) for checkpoint_id, parent_id, data in page}
            if cursor not in ancestors:
                break
            path = []
            while cursor is not None and cursor in ancestors:
                path.append(cursor)
                cursor = ancestors[cursor][0]
            answers = yield read(*((rows.WRITES, (*here, one)) for one in path))
            for one, answer in zip(path, answers, strict=True):
                remaining = {channel for channel in collected if channel not in seeds}
                if not remaining:
                    break
                writes = rows.unpack_writes(self.seal, self.serde, answer, remaining) if answer else []
                for channel in remaining:
                    collected[channel].append([write for write in writes if write[1] == channel])
                seeds.update((yield from self._seeds(here, ancestors[one][1], remaining)))
        result: dict[str, DeltaChannelHistory] = {}
        for channel, steps in collected.items():
            result[channel] = {"writes": [write for step in reversed(steps) for write in step]}
            if channel in seeds:
                result[channel]["seed"] = seeds[channel]
        return result

    def _parent(self, here: tuple[str, str], checkpoint_id: str | None) -> Steps[str | None]:
        sql = "SELECT parent_id FROM perihelion_checkpoints WHERE thread_id = ?1 AND checkpoint_ns = ?2"
        if checkpoint_id:
            (found,) = yield read((f"{sql} AND checkpoint_id = ?3", (*here, str(checkpoint_id))))
        else:
            (found,) = yield read((f"{sql} ORDER BY checkpoint_id DESC LIMIT 1", here))
        return found[0][0] if found else None

    def _seeds(self, here: tuple[str, str], data: bytes, channels: set[str]) -> Steps[dict[str, Any]]:
        body = self.serde.loads_typed(rows.unpack_checkpoint(self.seal, data)[0])
        values, versions = body["channel_values"], body["channel_versions"]
        seeds = {channel: values[channel] for channel in channels if channel in values}
        stored = [channel for channel in channels if channel not in values and channel in versions]
        if stored:
            answers = yield read(*((rows.CHAIN, (*here, channel, str(versions[channel]))) for channel in stored))
            for channel, answer in zip(stored, answers, strict=True):
                if answer:
                    chain = self.chain(channel, str(versions[channel]), answer)
                    seeds[channel] = self.encoder.decode(chain)[0]
        return seeds
