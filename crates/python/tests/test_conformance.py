"""The public conformance suite of LangGraph, through the asynchronous and the synchronous methods."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import DetectedCapabilities
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from perihelion import AsyncPerihelionSaver, PerihelionSaver


class Synchronous(PerihelionSaver):
    """Answers asynchronous calls through the synchronous methods."""

    async def aput(self, *args: Any, **options: Any) -> Any:
        return self.put(*args, **options)

    async def aput_writes(self, *args: Any, **options: Any) -> Any:
        return self.put_writes(*args, **options)

    async def aget_tuple(self, *args: Any, **options: Any) -> Any:
        return self.get_tuple(*args, **options)

    async def alist(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        for one in self.list(*args, **options):
            yield one

    async def adelete_thread(self, *args: Any, **options: Any) -> Any:
        return self.delete_thread(*args, **options)

    async def adelete_for_runs(self, *args: Any, **options: Any) -> Any:
        return self.delete_for_runs(*args, **options)

    async def acopy_thread(self, *args: Any, **options: Any) -> Any:
        return self.copy_thread(*args, **options)

    async def aprune(self, *args: Any, **options: Any) -> Any:
        return self.prune(*args, **options)

    async def aget_delta_channel_history(self, **options: Any) -> Any:
        return self.get_delta_channel_history(**options)


WAYS: dict[str, tuple[type[PerihelionSaver], dict[str, Any]]] = {
    "async": (AsyncPerihelionSaver, {}),
    "sync": (Synchronous, {}),
    "strict": (PerihelionSaver, {"strict": True}),
    "sealed": (PerihelionSaver, {"encryption_key": b"k" * 32}),
    "serde": (PerihelionSaver, {"serde": EncryptedSerializer.from_pycryptodome_aes(key=b"k" * 16)}),
}


@pytest.mark.parametrize("way", WAYS)
async def test_conformance(address: str, way: str) -> None:
    kind, options = WAYS[way]

    @checkpointer_test(name=way)
    async def saver() -> AsyncIterator[BaseCheckpointSaver[Any]]:
        opened = kind(address, **options)
        yield opened
        opened.close()

    report = await validate(saver)
    failures = [failure for result in report.results.values() for failure in result.failures or []]
    assert not failures, "\n".join(failures)
    assert all(result.passed and result.detected for result in report.results.values())
    capabilities = DetectedCapabilities.from_instance(kind(address, **options))
    assert not capabilities.missing
    base = BaseCheckpointSaver
    assert kind.aget_delta_channel_history is not base.aget_delta_channel_history
    assert kind.get_delta_channel_history is not base.get_delta_channel_history
