"""Where a thread of the server stands among the checkpoints here, and the config of what is done there."""

from __future__ import annotations

from typing import Any

from langgraph.checkpoint.base import CheckpointTuple, empty_checkpoint

from perihelion.host._project import Project
from perihelion.host._user import User, without_reserved

LINE = "perihelion_line"
"""Metadata that names the attempt which wrote a checkpoint: the step at which the server's thread left another one."""

SPECIAL = {"__error__", "__error_source_node__", "__interrupt__", "__resume__", "__scheduled__", "__start__"}


class Position:
    """Where a thread of the server stands among the checkpoints here."""

    def __init__(self, project: Project, order: dict[str, Any]) -> None:
        self.project = project
        self.thread: str = order["thread"]
        self.source: str | None = order.get("source")
        self.checkpoint: str | None = order.get("checkpoint")
        self.line: str | None = order.get("line")
        self.newest: str | None = None
        """The newest checkpoint of the run."""
        self.nested: list[dict[str, Any]] = []
        """Events in which subgraphs ask; the server sends them with the IDs of its own questions."""

    def config(self, checkpoint: str | None = None) -> Any:
        configurable = {"thread_id": self.thread, "checkpoint_ns": ""}
        return {"configurable": {**configurable, "checkpoint_id": checkpoint} if checkpoint else configurable}

    async def newest_tuple(self) -> CheckpointTuple | None:
        """Returns the newest checkpoint; a copied thread without any first receives those of its original."""
        saver = self.project.saver
        head = await saver.aget_tuple(self.config())
        if self.source and self.source != self.thread and head is None and self.checkpoint:
            await saver.acopy_thread(self.source, self.thread)
            head = await saver.aget_tuple(self.config())
        return head

    async def find(self) -> tuple[str | None, list[CheckpointTuple]]:
        """Returns the checkpoint to name, where it is not the newest, and those that an attempt before wrote."""
        saver = self.project.saver
        head = await self.newest_tuple()
        if head is None and self.checkpoint:
            raise LookupError("the checkpoints of this thread are missing in the server's database; restore them, or begin another thread")
        if head is None or head.checkpoint["id"] == self.checkpoint:
            return None, []
        ahead = []
        async for one in saver.alist(self.config(), filter={LINE: self.line}):
            if one.checkpoint["id"] <= (self.checkpoint or ""):
                break
            ahead.append(one)
        if ahead:
            newest = ahead[0].checkpoint["id"]
            return (None if newest == head.checkpoint["id"] else newest), ahead[::-1]
        if self.checkpoint is None:
            # The thread begins anew beside what an earlier attempt left.
            empty = empty_checkpoint()
            await saver.aput(self.config(), empty, {"source": "input", "step": -2, "parents": {}}, {})
            return empty["id"], []
        return self.checkpoint, []


async def pending(graph: Any, position: Position, config: Any) -> list[dict[str, Any]]:
    """Lists the questions that wait at a checkpoint."""
    found = await position.project.saver.aget_tuple(config)
    if found is None:
        return []
    writes = found.pending_writes or []
    done = {task for task, channel, _ in writes if channel not in SPECIAL}
    asked = {task: value for task, channel, value in writes if channel == "__interrupt__" and task not in done}
    if not asked:
        return []
    answered = {task: len(value) for task, channel, value in writes if channel == "__resume__" and isinstance(value, list)}
    state = await graph.aget_state(config, subgraphs=True)
    names = {task.id: task.name for task in state.tasks}
    nested = {task.id: await _answers_below(position, task.state) for task in state.tasks}
    return [
        {"id": one.id, "value": one.value, "task": names.get(task, ""), "answered": answered.get(task, 0) + nested.get(task, 0)}
        for task, interrupts in asked.items()
        if task in names
        for one in interrupts
    ]


async def _answers_below(position: Position, state: Any) -> int:
    """Counts the answers that the tasks of a subgraph have taken."""
    if not hasattr(state, "config"):
        return 0
    found = await position.project.saver.aget_tuple(state.config)
    writes = (found.pending_writes if found else None) or []
    taken = sum(len(value) for _, channel, value in writes if channel == "__resume__" and isinstance(value, list))
    for task in state.tasks:
        taken += await _answers_below(position, task.state)
    return taken


def configure(order: dict[str, Any], position: Position) -> dict[str, Any]:
    """Makes the config of a run, with what LangGraph's servers put there."""
    request = order.get("request") or {}
    config = dict(request.get("config") or {})
    context = request.get("context") or {}
    metadata = {**(request.get("metadata") or {}), **(config.get("metadata") or {})}
    run = request.get("run_id")
    user = _user(position.project, request.get("user"), config)
    identity = request.get("user")
    own = {
        "thread_id": position.thread,
        "checkpoint_ns": "",
        "run_id": run,
        "graph_id": order["graph"],
        "assistant_id": request.get("assistant_id"),
        "user_id": identity,
        "langgraph_auth_user_id": identity,
        "langgraph_auth_user": user,
        "langgraph_auth_permissions": user["permissions"] if user else [],
        "perihelion_tenant": order["tenant"],
    }
    given = without_reserved({**(context if isinstance(context, dict) else {}), **(config.get("configurable") or {})})
    for name in ("checkpoint_id", "checkpoint_ns", "checkpoint_map", "thread_id"):
        given.pop(name, None)
    metadata |= {LINE: position.line, "run_id": run, "graph_id": order["graph"]}
    config |= {"configurable": {**given, **{k: v for k, v in own.items() if v is not None}}, "metadata": metadata}
    if run:
        config["run_id"] = run
    return config


def _user(project: Project, identity: str | None, config: dict[str, Any]) -> User | None:
    """Returns the user of a run, with the fields that the auth handler gave it."""
    given = (config.get("configurable") or {}).pop("langgraph_auth_user", None)
    if not identity:
        return None
    if project.auth is None or not isinstance(given, dict) or given.get("identity") != identity:
        return User(identity)
    return User(identity, given.get("permissions") or (), given)
