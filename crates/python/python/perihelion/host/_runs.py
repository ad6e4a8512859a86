"""One run of a graph: from where the server's thread stands, one super-step at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

from langchain_core.messages import AIMessageChunk, BaseMessage, BaseMessageChunk, message_chunk_to_message
from langchain_core.runnables import Runnable
from langgraph.types import Command, Send

from perihelion.host._position import LINE, Position, configure, pending
from perihelion.host._project import Project

Sender = Callable[[dict[str, Any]], Awaitable[None]]


INPUT_TASK = "00000000-0000-0000-0000-000000000000"
"""The task under which LangGraph stores the writes of commands."""

MARK = "__no_writes__"
"""The channel that names the edit of a command beside its writes; LangGraph applies nothing of it."""


def _has_edit(order: dict[str, Any]) -> bool:
    command = order.get("command") or {}
    return bool(command.get("update") or command.get("goto"))


async def _edit(order: dict[str, Any], position: Position, at: Any) -> dict[str, Any]:
    """Returns the update and the next nodes of a command, unless an attempt before has stored them at a checkpoint."""
    update, goto = order["command"].get("update") or [], order["command"].get("goto") or []
    # Several runs can answer at one checkpoint.
    mark = order["command"].get("id") or order.get("line")
    found = await position.project.saver.aget_tuple(at)
    if found and (INPUT_TASK, MARK, mark) in (found.pending_writes or []):
        return {}
    pairs = update.items() if isinstance(update, dict) else map(tuple, update)
    goto = goto if isinstance(goto, list) else [goto]
    targets = [Send(to["node"], to["input"]) if isinstance(to, dict) else to for to in goto]
    return {"update": [(MARK, mark), *pairs], "goto": targets}


async def run(project: Project, order: dict[str, Any], send: Sender, proceed: asyncio.Semaphore) -> None:
    """Runs a graph from where the server's thread stands; each super-step waits until the server has kept the last."""
    position = Position(project, order)
    config = configure(order, position)
    context = (order.get("request") or {}).get("context")
    async with project.graph(order["graph"], config, "threads.create_run", context) as graph:
        named, ahead = await position.find()
        pauses = _Pauses(graph, order.get("request") or {})
        ran: list[str] = []
        has_begun = bool(ahead)
        for one in ahead:
            state = await graph.aget_state(position.config(one.checkpoint["id"]))
            if _is_before(one.metadata, state.next):
                continue
            stops = pauses.at(ran, list(state.next))
            ran = list(state.next)
            await send(_step(graph, one.checkpoint["id"], state.values, state.next, one.metadata, state.tasks, stops))
            await proceed.acquire()
            position.checkpoint = one.checkpoint["id"]
        if named:
            config["configurable"]["checkpoint_id"] = named
        at = position.config(named)
        answers, has_edit = order.get("answers"), _has_edit(order)
        # A fork is stored before the edit with which it continues.
        is_before = all(one.metadata.get("source") == "fork" for one in ahead)
        edit = await _edit(order, position, at) if has_edit and is_before else {}
        given: Any = None
        runs = True
        if answers or edit:
            open_ = {(one["id"], one["answered"]) for one in await pending(graph, position, at)}
            resume = {one["id"]: one["value"] for one in answers or () if (one["id"], one["answered"]) in open_}
            given = Command(resume=resume or None, **edit) if resume or edit else None
        elif order.get("has_input") and not has_begun:
            given = order["input"]
        elif not has_begun:
            # What waits is asked, and does not run again for that.
            runs = not await pending(graph, position, at)
        if runs:
            await _stream(graph, given, config, context, order, position, send, proceed)
        head = await project.saver.aget_tuple(position.config())
        newest = position.newest or named
        end = position.config(None if head is None or head.checkpoint["id"] == newest else newest)
        if has_edit and position.checkpoint == order.get("checkpoint"):
            # LangGraph keeps an edit beside its checkpoint until a super-step ends.
            state = await graph.aget_state(end)
            id = state.config["configurable"].get("checkpoint_id")
            await send(_step(graph, id, state.values, state.next, state.metadata or {}, state.tasks, False))
            await proceed.acquire()
        waiting = await pending(graph, position, end)
        state = await graph.aget_state(end) if not waiting else None
        if waiting:
            await send({"kind": "asks", "interrupts": waiting, "nested": position.nested})
        else:
            await send({"kind": "end", "next": list(state.next) if state else []})


def _is_before(metadata: Any, following: Any) -> bool:
    """Whether a checkpoint is one of the input or of a fork, before which the server's thread has its own step."""
    source = metadata.get("source")
    return source == "fork" or source == "input" and list(following) == ["__start__"]


def _step(graph: Any, id: str, values: Any, following: Any, metadata: Any, tasks: Any, pauses: bool) -> dict[str, Any]:
    def named(task: Any) -> dict[str, Any]:
        fields = task if isinstance(task, dict) else {"id": task.id, "name": task.name}
        return {"id": fields["id"], "name": fields["name"]}

    if not isinstance(values, dict):
        values = {} if values is None else {"__root__": values}
    shown = graph.output_channels
    return {
        "kind": "step",
        "checkpoint": id,
        "values": values,
        "hidden": [] if isinstance(shown, str) else [name for name in values if name not in shown],
        "next": list(following),
        "tasks": [named(task) for task in tasks],
        "metadata": {name: metadata.get(name) for name in ("source", "step")},
        "pauses": pauses,
    }


async def _stream(
    graph: Any,
    given: Any,
    config: dict[str, Any],
    context: Any,
    order: dict[str, Any],
    position: Position,
    send: Sender,
    proceed: asyncio.Semaphore,
) -> None:
    request = order.get("request") or {}
    requested = set(request.get("modes") or [])
    subgraphs = bool(request.get("subgraphs"))
    modes = {mode for mode in requested if mode in ("updates", "custom", "tasks", "debug")} | {"checkpoints", "values"}
    if requested & {"messages", "messages-tuple"}:
        modes.add("messages")
    pauses = _Pauses(graph, request)
    options: dict[str, Any] = {
        "stream_mode": sorted(modes),
        "subgraphs": subgraphs,
        "durability": "sync",
        "output_keys": graph.output_channels,
        "interrupt_before": pauses.before,
        "interrupt_after": pauses.after,
    }
    if graph.context_schema is not None:
        found = config["configurable"] if context is None else context
        fields = (graph.get_context_jsonschema() or {}).get("properties") or found
        options["context"] = {name: found[name] for name in fields if name in found}
    messages = _Messages()
    ran: list[str] = []
    # A run that continues begins with the values that it finds; they are not those of a step.
    continues = given is None or isinstance(given, Command)
    is_silent = True
    async for ns, mode, data in _chunks(graph, given, config, options, "events" in requested, send):
        suffix = "|" + "|".join(ns) if ns else ""
        if mode == "values" and not ns:
            is_silent, continues = is_silent and continues, False
        if mode == "checkpoints" and not ns:
            position.newest = id = data["config"]["configurable"]["checkpoint_id"]
            if not _is_before(data["metadata"], data["next"]) and id != position.checkpoint:
                stops = pauses.at(ran, data["next"])
                step = _step(graph, id, data["values"], data["next"], data["metadata"], data["tasks"], stops)
                await send({**step, "silent": is_silent})
                is_silent = True
                await proceed.acquire()
                position.checkpoint = id
            ran = list(data["next"])
        elif mode == "messages":
            for way, event, shown in messages.shown(data[0], _shown_metadata(data[1])):
                if way in requested:
                    await send({"kind": "event", "mode": way, "event": event + suffix, "data": shown})
        elif mode in requested:
            # The server tells itself what is asked, under its own ids, and the state of the thread.
            asks = mode in ("updates", "values") and isinstance(data, dict) and "__interrupt__" in data
            is_state = not ns and (mode == "values" or mode == "debug" and data["type"] == "checkpoint")
            shown = {"mode": mode, "event": mode + suffix, "data": _shown(data)}
            if asks and ns:
                position.nested.append(shown)
            elif not asks and not is_state:
                await send({"kind": "event", **shown})


def _shown(data: Any) -> Any:
    """Returns an event without what only this process needs."""
    if isinstance(data, dict) and isinstance(data.get("payload"), dict):
        return {**data, "payload": _shown(data["payload"])}
    if isinstance(data, dict) and isinstance(data.get("metadata"), dict):
        return {**data, "metadata": _shown_metadata(data["metadata"])}
    return data


def _shown_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in metadata.items() if name != LINE}


class _Paced(Runnable[Any, Any]):
    """Streams a graph that goes on once its last chunk was taken: `astream_events` reads ahead without a bound."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.taken = asyncio.Semaphore(0)

    def invoke(self, *ignored: Any, **more: Any) -> Any:
        raise NotImplementedError

    async def astream(self, input: Any, config: Any = None, **options: Any) -> AsyncIterator[Any]:
        async with aclosing(self.graph.astream(input, config, **options)) as chunks:
            async for chunk in chunks:
                yield chunk
                await self.taken.acquire()


async def _chunks(
    graph: Any, given: Any, config: dict[str, Any], options: dict[str, Any], with_events: bool, send: Sender
) -> AsyncIterator[tuple[tuple[str, ...], str, Any]]:
    if not with_events:
        async with aclosing(graph.astream(given, config, **options)) as chunks:
            async for chunk in chunks:
                yield chunk if options["subgraphs"] else ((), *chunk)
        return
    paced: Any = _Paced(graph)
    run = None
    async with aclosing(paced.astream_events(given, config, version="v2", **options)) as events:
        async for event in events:
            run = run or event["run_id"]
            if event["event"] == "on_chain_stream" and event["run_id"] == run:
                chunk = event["data"]["chunk"]
                yield chunk if options["subgraphs"] else ((), *chunk)
                paced.taken.release()
            else:
                await send({"kind": "event", "mode": "events", "event": "events", "data": _shown(event)})


def _nodes(given: Any) -> Any:
    return "*" if given and "*" in given else given


class _Pauses:
    """Tells before a step whether the run will pause there."""

    def __init__(self, graph: Any, request: dict[str, Any]) -> None:
        self.before = _nodes(request.get("interrupt_before")) or graph.interrupt_before_nodes
        self.after = _nodes(request.get("interrupt_after")) or graph.interrupt_after_nodes

    def at(self, ran: list[str], following: list[str]) -> bool:
        def has(names: Any, nodes: list[str]) -> bool:
            return bool(nodes) and (names == "*" or any(node in names for node in nodes))

        return bool(following) and (has(self.before, following) or has(self.after, ran))


class _Messages:
    """Makes the events of the modes `messages` and `messages-tuple`."""

    def __init__(self) -> None:
        self.seen: dict[str, BaseMessage] = {}

    def shown(self, message: Any, metadata: Any) -> list[tuple[str, str, Any]]:
        events: list[tuple[str, str, Any]] = [("messages-tuple", "messages", [message, metadata])]
        if not isinstance(message, BaseMessage) or message.id is None:
            return events
        if message.id not in self.seen:
            events.append(("messages", "messages/metadata", {message.id: {"metadata": metadata}}))
            self.seen[message.id] = message
        elif isinstance(message, BaseMessageChunk) and isinstance(self.seen[message.id], BaseMessageChunk):
            self.seen[message.id] = self.seen[message.id] + message  # type: ignore[assignment]
        whole = self.seen[message.id]
        is_part = isinstance(message, AIMessageChunk)
        shown = message_chunk_to_message(whole) if isinstance(whole, BaseMessageChunk) else whole
        events.append(("messages", "messages/partial" if is_part else "messages/complete", [shown]))
        return events


async def update(project: Project, order: dict[str, Any]) -> dict[str, Any]:
    """Edits the state of a thread and returns the new step."""
    position = Position(project, order)
    base = configure(order, position)
    async with project.graph(order["graph"], base, "threads.update") as graph:
        named, _ = await position.find()
        config = {**base, "configurable": {**base["configurable"]}}
        # Not one that an edit left whose step the server rejected.
        if position.checkpoint or named:
            config["configurable"]["checkpoint_id"] = position.checkpoint or named
        as_node = order.get("as_node")
        values = None if as_node == "__end__" and not order["values"] else order["values"]
        made = await graph.aupdate_state(config, values, as_node=as_node)
        id = made["configurable"]["checkpoint_id"]
        state = await graph.aget_state(position.config(id))
        return _step(graph, id, state.values, state.next, state.metadata or {}, state.tasks, False)
