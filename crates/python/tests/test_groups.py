"""What belongs to one step is one transaction, and what fails in it fails alone."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from graphs import config, counting, rows
from perihelion import PerihelionSaver, _groups
from perihelion._groups import Kind

GOOD = ("INSERT INTO perihelion_versions (name, version) VALUES (?1, 1)", ("good",))
BAD = ("INSERT INTO perihelion_versions (name, version) VALUES (?1, 1)", (None,))


class Counting:
    """Counts the transactions that write."""

    def __init__(self, native: Any) -> None:
        self.native = native
        self.count = 0

    def run(self, statements: Any, writes: bool) -> Any:
        self.count += writes
        return self.native.run(statements, writes)

    def submit(self, statements: Any, writes: bool, done: Any) -> None:
        self.count += writes
        self.native.submit(statements, writes, done)


@pytest.fixture
def saver(address: str) -> Any:
    with PerihelionSaver.from_conn_string(address) as saver:
        saver.setup()
        yield saver


def counted(saver: PerihelionSaver) -> Counting:
    native = Counting(saver._connection.native)
    saver._connection._groups._native = native  # type: ignore[assignment]
    return native


async def test_a_step_of_a_graph_is_one_transaction(saver: PerihelionSaver) -> None:
    native = counted(saver)
    await counting(20).compile(checkpointer=saver).ainvoke({"messages": [], "items": []}, config(), durability="sync")
    assert native.count <= 22


def test_a_step_is_one_transaction_on_threads(saver: PerihelionSaver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_groups, "PATIENCE", 5)
    native = counted(saver)
    counting(20).compile(checkpointer=saver).invoke({"messages": [], "items": []}, config(), durability="sync")
    assert native.count <= 30
    state = counting(20).compile(checkpointer=saver).get_state(config())
    assert len(state.values["items"]) == 20


async def test_what_fails_in_a_turn_fails_alone(saver: PerihelionSaver) -> None:
    groups = saver._connection._groups
    calls = [groups.asubmit([statement], Kind.WRITE) for statement in (GOOD, BAD)]
    good, bad = await asyncio.gather(*calls, return_exceptions=True)
    assert good == [[]] and isinstance(bad, RuntimeError)
    assert ("good", 1) in rows(saver, "versions")


@pytest.mark.parametrize("joining", [GOOD, BAD])
def test_what_fails_on_a_thread_fails_alone(
    saver: PerihelionSaver, monkeypatch: pytest.MonkeyPatch, joining: Any
) -> None:
    monkeypatch.setattr(_groups, "PATIENCE", 30)
    groups, found = saver._connection._groups, []

    def join() -> None:
        try:
            found.append(groups.run([joining], Kind.JOIN))
        except RuntimeError as error:
            found.append(error)

    thread = threading.Thread(target=join)
    thread.start()
    while not groups._joining:
        pass
    other = BAD if joining is GOOD else GOOD
    if other is BAD:
        with pytest.raises(RuntimeError):
            groups.run([other], Kind.WRITE)
    else:
        assert groups.run([other], Kind.WRITE) == [[]]
    thread.join()
    assert found == [[[]]] or isinstance(found[0], RuntimeError)
    assert ("good", 1) in rows(saver, "versions")
