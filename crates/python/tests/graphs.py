"""Small graphs and helpers for the tests."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from perihelion import PerihelionSaver


class State(TypedDict):
    messages: Annotated[list[Any], add_messages]
    items: Annotated[list[Any], operator.add]


def counting(rounds: int) -> StateGraph[State]:
    """A graph of one node that appends a message and an item per step."""

    def node(state: State) -> dict[str, Any]:
        number = len(state["items"])
        return {"messages": [AIMessage(content=f"m{number}", id=f"m{number}")], "items": [{"number": number}]}

    graph = StateGraph(State)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    graph.add_conditional_edges("node", lambda state: END if len(state["items"]) >= rounds else "node")
    return graph


def config(thread: str = "t", **more: Any) -> Any:
    return {"configurable": {"thread_id": thread, **more}, "recursion_limit": 10_000}


def rows(saver: PerihelionSaver, table: str) -> list[Any]:
    (found,) = saver._connection.native.run([(f"SELECT * FROM perihelion_{table}", ())], False)
    return found


class Thread:
    """Writes the versions of one channel through a saver, as a graph does."""

    def __init__(self, saver: PerihelionSaver, name: str = "t") -> None:
        self.saver = saver
        self.config = config(name, checkpoint_ns="")
        self.versions: dict[str, Any] = {}
        self.step = 0

    def put(self, value: Any, channel: str = "list") -> Any:
        from langgraph.checkpoint.base import empty_checkpoint

        checkpoint = empty_checkpoint()
        self.versions = {**self.versions, channel: self.saver.get_next_version(self.versions.get(channel), None)}
        checkpoint["channel_values"] = {channel: value}
        checkpoint["channel_versions"] = dict(self.versions)
        self.step += 1
        metadata: Any = {"source": "loop", "step": self.step, "parents": {}}
        self.config = self.saver.put(self.config, checkpoint, metadata, {channel: self.versions[channel]})
        return self.config

    def get(self, at: Any = None, channel: str = "list") -> Any:
        found = self.saver.get_tuple(at or self.config)
        assert found
        return found.checkpoint["channel_values"][channel]


def edits() -> dict[str, Callable[[list[Any]], list[Any]]]:
    """What steps do to a list of at least ten elements."""
    return {
        "append": lambda old: [*old, {"new": 1}],
        "append several": lambda old: [*old, "x", "y", "z"],
        "prepend": lambda old: [{"first": True}, *old],
        "remove in the middle": lambda old: old[:3] + old[5:],
        "remove the last": lambda old: old[:-1],
        "keep the last": lambda old: old[-4:],
        "replace in the middle": lambda old: [*old[:4], {"replaced": True}, *old[5:]],
        "scattered": lambda old: [{"s": i} if i % 3 == 0 else one for i, one in enumerate(old)],
        "reverse": lambda old: old[::-1],
        "repeat": lambda old: [*old, *old[:3], old[0]],
        "overwrite": lambda old: [{"o": i} for i in range(12)],
        "same": lambda old: list(old),
        "copies": lambda old: [dict(one) if isinstance(one, dict) else one for one in old],
        "empty and full": lambda old: [],
    }
