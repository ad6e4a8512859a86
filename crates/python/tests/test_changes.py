"""Lists and dicts are stored by their changes, and read back exactly."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from graphs import Thread, config, counting, edits, rows
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Overwrite
from perihelion import PerihelionSaver
from perihelion._channels import Cache
from perihelion._groups import Kind
from pydantic import BaseModel, ConfigDict

OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "strict": {"strict": True},
    "sealed": {"encryption_key": b"k" * 32},
}


@pytest.fixture(params=OPTIONS)
def saver(request: pytest.FixtureRequest, address: str) -> Any:
    with PerihelionSaver.from_conn_string(address, **OPTIONS[request.param]) as saver:
        yield saver


def fresh(saver: PerihelionSaver) -> None:
    """Forgets what the saver holds, as a new process does."""
    saver._cache.drop()


@pytest.mark.parametrize("name", edits())
def test_an_edit_is_read_back_exactly(saver: PerihelionSaver, name: str) -> None:
    thread = Thread(saver)
    old = [{"number": i, "text": f"text {i}"} for i in range(20)]
    before = thread.put(old)
    new = edits()[name](old)
    after = thread.put(new)
    more = thread.put([*new, "more"])
    for _ in range(2):
        assert thread.get(before) == old
        assert thread.get(after) == new
        assert thread.get(more) == [*new, "more"]
        fresh(saver)


def test_random_edits_are_read_back_from_every_checkpoint(saver: PerihelionSaver) -> None:
    random.seed(7)
    thread = Thread(saver)
    value: list[Any] = [{"number": i} for i in range(12)]
    expected = []
    choices = [edit for name, edit in edits().items() if name != "empty and full"]
    for step in range(60):
        value = random.choice(choices)(value)[-60:]
        while len(value) < 12:
            value = [*value, {"step": step, "length": len(value)}]
        expected.append((thread.put(value), [dict(one) if isinstance(one, dict) else one for one in value]))
        if step % 13 == 0:
            fresh(saver)
        elif step % 7 == 0:
            value = thread.get()
    for at, wanted in expected:
        assert thread.get(at) == wanted


def test_a_dict_is_stored_by_its_entries(saver: PerihelionSaver) -> None:
    thread = Thread(saver)
    value: dict[Any, Any] = {f"key {i}": {"text": "x" * 100, "i": i} for i in range(200)}
    thread.put(value)
    after = thread.put({**value, "key 7": "changed", "new": 1})
    fewer = thread.put({key: one for key, one in value.items() if key != "key 3"})
    reordered = thread.put(dict(reversed(value.items())))
    fresh(saver)
    assert thread.get(after) == {**value, "key 7": "changed", "new": 1}
    assert list(thread.get(after))[:3] == ["key 0", "key 1", "key 2"]
    assert "key 3" not in thread.get(fewer)
    assert list(thread.get(reordered)) == list(reversed(value))


def test_a_step_stores_what_it_changed_and_no_more(saver: PerihelionSaver) -> None:
    graph = counting(120).compile(checkpointer=saver)
    graph.invoke({"messages": [], "items": []}, config())
    sizes = [len(row[-1]) for row in rows(saver, "values") if row[2] == "messages"]
    assert len(sizes) >= 119
    assert max(sizes) < 5 * min(sizes)


def test_a_resumed_thread_continues_with_changes(saver: PerihelionSaver) -> None:
    counting(30).compile(checkpointer=saver).invoke({"messages": [], "items": []}, config())
    fresh(saver)
    graph = counting(60).compile(checkpointer=saver)
    graph.invoke({"messages": [HumanMessage("more", id="h")], "items": []}, config())
    whole = [row for row in rows(saver, "values") if row[2] == "items" and row[4] is None]
    assert len(whole) <= 2
    state = graph.get_state(config()).values
    assert [item["number"] for item in state["items"]] == list(range(60))


def test_messages_are_edited_removed_and_overwritten(saver: PerihelionSaver) -> None:
    graph = counting(20).compile(checkpointer=saver)
    graph.invoke({"messages": [], "items": []}, config())
    graph.update_state(config(), {"messages": [AIMessage(content="edited", id="m5"), RemoveMessage(id="m9")]})
    fresh(saver)
    texts = [message.content for message in graph.get_state(config()).values["messages"]]
    assert texts == ["edited" if i == 5 else f"m{i}" for i in range(20) if i != 9]
    graph.update_state(config(), {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), AIMessage("only", id="o")]})
    assert [message.content for message in graph.get_state(config()).values["messages"]] == ["only"]
    graph.update_state(config(), {"items": Overwrite([1, 2])})
    fresh(saver)
    assert graph.get_state(config()).values["items"] == [1, 2]
    history = list(graph.get_state_history(config()))
    assert len(history[3].values["messages"]) == 20


@pytest.mark.parametrize("place", [0, 40, 75, 99])
def test_an_object_that_was_changed_in_place_is_noticed(saver: PerihelionSaver, place: int) -> None:
    thread = Thread(saver)
    value: list[Any] = [AIMessage(content=f"text {i}", id=str(i), additional_kwargs={"n": {"i": i}}) for i in range(100)]
    thread.put(value)
    if place % 2:
        value[place].content = "changed"
    else:
        value[place].additional_kwargs["n"]["i"] = "changed"
    for _ in range(4):
        value = [*value, AIMessage(content="more", id=f"more {len(value)}")]
        thread.put(value)
    fresh(saver)
    assert thread.get() == value


class Slotted:
    __slots__ = ("n",)

    def __init__(self, n: int) -> None:
        self.n = n

    def model_dump(self) -> dict[str, int]:
        return {"n": self.n}


@dataclass(slots=True)
class Pair:
    n: int


class Text(str):
    """A text with attributes."""


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


MUTABLE: dict[str, tuple[Callable[[int], Any], Callable[[Any], Any]]] = {
    "extra": (lambda i: Open(n=i), lambda one: setattr(one, "n", -1)),  # type: ignore[call-arg]
    "slots": (Slotted, lambda one: setattr(one, "n", -1)),
    "set": (lambda i: {"in": {i}}, lambda one: one["in"].add(-1)),
    "deque": (lambda i: deque([i, i]), lambda one: one.append(-1)),
    "bytes": (lambda i: {"in": bytearray([i])}, lambda one: one["in"].append(1)),
    "dataclass": (Pair, lambda one: setattr(one, "n", -1)),
    "text": (lambda i: {"in": Text(i)}, lambda one: one.update({"in": Text(-1)})),
}


@pytest.mark.parametrize("kind", MUTABLE)
@pytest.mark.parametrize("place", [3, 99])
def test_a_change_in_place_is_noticed_in_objects_of_all_kinds(saver: PerihelionSaver, kind: str, place: int) -> None:
    make, change = MUTABLE[kind]
    thread = Thread(saver)
    value: list[Any] = [make(i) for i in range(100)]
    thread.put(value)
    change(value[place])
    for _ in range(4):
        value = [*value, "more"]
        after = thread.put(value)
    whole = Thread(saver, "whole")
    expected = whole.get(whole.put(value))
    fresh(saver)
    assert thread.get(after) == expected == whole.get()


def test_values_that_do_not_change_are_not_stored_again(saver: PerihelionSaver) -> None:
    thread = Thread(saver)
    kinds: list[Callable[[int], Any]] = [
        lambda i: datetime(2026, 1, 1 + i % 28, tzinfo=timezone.utc),
        lambda i: UUID(int=i),
        Decimal,
        lambda i: Path(str(i)),
        lambda i: frozenset([i]),
        lambda i: bytearray([i]),
    ]
    value: list[Any] = [kinds[i % len(kinds)](i) for i in range(200)]
    thread.put(value)
    for _ in range(4):
        value = [*value, "more"]
        thread.put(value)
    assert all(len(row[-1]) < 200 for row in rows(saver, "values") if row[4])
    fresh(saver)
    assert thread.get() == value


def test_an_object_that_is_many_elements_changes_everywhere(saver: PerihelionSaver) -> None:
    thread = Thread(saver)
    same = {"number": 1}
    thread.put([same] * 300)
    same["number"] = 2
    after = thread.put([*[same] * 300, "more"])
    fresh(saver)
    assert thread.get(after) == [*[{"number": 2}] * 300, "more"]


@pytest.mark.parametrize(("old", "new"), [(-1, -2), (-1.0, -2.0), (0.0, -0.0), (1, True)])
def test_a_change_in_place_to_a_number_of_the_same_hash_is_noticed(saver: PerihelionSaver, old: Any, new: Any) -> None:
    thread = Thread(saver)
    message = {"score": old}
    thread.put([message])
    message["score"] = new
    after = thread.put([message, "more"])
    fresh(saver)
    assert repr(thread.get(after)) == repr([{"score": new}, "more"])


def test_a_strict_saver_notices_a_change_in_place_at_once(address: str) -> None:
    with PerihelionSaver.from_conn_string(address, strict=True) as saver:
        thread = Thread(saver)
        value: list[Any] = [{"text": [f"text {i}"]} for i in range(300)]
        thread.put(value)
        value[150]["text"][0] = "changed"
        thread.put([*value, "more"])
        fresh(saver)
        assert thread.get() == [*value, "more"]
        assert len(rows(saver, "values")[-1][-1]) < 200


def test_forks_of_one_checkpoint_do_not_mix(saver: PerihelionSaver) -> None:
    graph = counting(12).compile(checkpointer=saver)
    graph.invoke({"messages": [], "items": []}, config())
    middle = list(graph.get_state_history(config()))[6]
    ends = [graph.update_state(middle.config, {"items": [f"fork {i}"]}) for i in range(3)]
    fresh(saver)
    for i, end in enumerate(ends):
        values = graph.get_state(end).values
        assert values["items"] == [*middle.values["items"], f"fork {i}"]


def test_a_chain_is_ended_before_it_outweighs_its_value(saver: PerihelionSaver) -> None:
    thread = Thread(saver)
    value: list[Any] = [{"text": "x" * 400, "i": i} for i in range(20)]
    for step in range(200):
        value = [*value[1:], {"text": "x" * 400, "step": step}]
        thread.put(value)
    whole = [row for row in rows(saver, "values") if row[4] is None]
    assert 2 <= len(whole) < 20
    fresh(saver)
    assert thread.get() == value


def test_a_base_that_another_process_deleted_is_replaced_by_the_whole_value(saver: PerihelionSaver) -> None:
    thread = Thread(saver)
    value: list[Any] = [{"i": i} for i in range(30)]
    thread.put(value)
    saver._connection.native.run([("DELETE FROM perihelion_values", ())], True)
    thread.put([*value, "more"])
    fresh(saver)
    assert thread.get() == [*value, "more"]


def test_a_step_that_is_stored_while_its_base_is_deleted_keeps_its_value(saver: PerihelionSaver) -> None:
    saver.setup()
    thread = Thread(saver)
    thread.config = config(checkpoint_ns="", run_id="old")
    thread.put([{"i": i} for i in range(30)])
    groups, run = saver._connection._groups, saver._connection._groups.run

    def interrupted(batch: Any, kind: Kind) -> Any:
        if kind is Kind.WRITE:
            groups.run = run  # type: ignore[method-assign]
            thread.put([*thread.get(), "more"])
        return run(batch, kind)

    groups.run = interrupted  # type: ignore[method-assign]
    saver.delete_for_runs(["old"])
    fresh(saver)
    assert thread.get() == [*({"i": i} for i in range(30)), "more"]
    assert len(rows(saver, "checkpoints")) == 1


def test_the_cache_forgets_what_was_not_used(saver: PerihelionSaver) -> None:
    saver._cache = Cache(2)
    threads = [Thread(saver, f"t{i}") for i in range(5)]
    for thread in threads:
        thread.put([1, 2, 3])
    assert len(saver._cache._versions) == 2
    for thread in threads:
        thread.put([1, 2, 3, 4])
        assert thread.get() == [1, 2, 3, 4]
