"""What the server asks besides runs: states with their subgraphs, descriptions of graphs, and the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langgraph.store.base import NOT_PROVIDED

from perihelion.host import _auth, _threads
from perihelion.host._position import Position, configure
from perihelion.host._project import Project, described
from perihelion.host._user import without_reserved


async def state(project: Project, order: dict[str, Any]) -> dict[str, Any]:
    """Returns the state at a checkpoint as clients see it, with open questions and errors, and with states of subgraphs."""
    position = Position(project, order)
    newest = await project.saver.aget_tuple(position.config())
    if newest is None and position.source:
        # A copy that has not run yet shares the checkpoints of its original.
        position.thread = position.source
        newest = await project.saver.aget_tuple(position.config())
    # Of the newest checkpoint, what finished tasks have written is shown, too; LangGraph does so without its ID.
    is_newest = newest is not None and newest.checkpoint["id"] == position.checkpoint
    config = position.config(None if is_newest else position.checkpoint)
    if namespace := order.get("namespace"):
        config = {"configurable": {"thread_id": position.thread, "checkpoint_ns": namespace}}
    async with project.graph(order["graph"], configure(order, position), "threads.read") as graph:
        return _state(await graph.aget_state(config, subgraphs=bool(order.get("subgraphs"))))


async def copy(project: Project, order: dict[str, Any]) -> None:
    """Gives a copied thread checkpoints of its own, so that its original can be deleted."""
    await Position(project, order).newest_tuple()


async def edit(project: Project, order: dict[str, Any]) -> None:
    """Edits the state of a subgraph that has not ended; the state around it stays."""
    position = Position(project, order)
    await position.newest_tuple()
    config: Any = {"configurable": {"thread_id": position.thread, "checkpoint_ns": order["namespace"]}}
    async with project.graph(order["graph"], configure(order, position), "threads.update") as graph:
        await graph.aupdate_state(config, order["values"], as_node=order.get("as_node"))


def _state(found: Any) -> dict[str, Any]:
    def checkpoint(config: Any) -> Any:
        names = ("thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map")
        return {name: config["configurable"][name] for name in names if name in config["configurable"]} if config else None

    def task(one: Any) -> dict[str, Any]:
        below = one.state
        return {
            "id": one.id,
            "name": one.name,
            "path": list(one.path),
            "error": one.error if one.error is None or isinstance(one.error, str) else repr(one.error),
            "interrupts": _questions(one.interrupts),
            "checkpoint": checkpoint(below) if isinstance(below, dict) else None,
            "state": None if below is None or isinstance(below, dict) else _state(below),
            "result": one.result,
        }

    return {
        "values": found.values,
        "next": list(found.next),
        "tasks": [task(one) for one in found.tasks],
        "metadata": found.metadata,
        "created_at": found.created_at,
        "checkpoint": checkpoint(found.config),
        "parent_checkpoint": checkpoint(found.parent_config),
        "interrupts": _questions(found.interrupts),
    }


def _questions(interrupts: Sequence[Any]) -> list[dict[str, Any]]:
    return [{"id": one.id, "value": one.value} for one in interrupts]


async def describe(project: Project, order: dict[str, Any]) -> dict[str, Any]:
    """Describes a graph as its factory makes it for a config: its schemas, its drawing, and its subgraphs."""
    config = {**(order.get("config") or {})}
    given = without_reserved({**(order.get("context") or {}), **(config.get("configurable") or {})})
    config["configurable"] = {**given, "perihelion_tenant": order["tenant"]}
    async with project.graph(order["graph"], config, "assistants.read", order.get("context")) as graph:
        found = await described(graph, order.get("xray") or False)
        recurses = bool(order.get("recurse"))
        below = [one async for one in graph.aget_subgraphs(namespace=order.get("namespace"), recurse=recurses)]
        found["subgraphs"] = {name: await described(one, None) for name, one in below}
        return found


async def store(project: Project, order: dict[str, Any]) -> Any:
    """Reads and writes the store that nodes see."""
    of, given = project.store_of(order["tenant"]), order["with"]
    match order["do"]:
        case "put":
            ttl = given.get("ttl")
            lasts = NOT_PROVIDED if ttl is None else ttl
            await of.aput(tuple(given["namespace"]), given["key"], given["value"], given.get("index"), ttl=lasts)
        case "get":
            namespace = tuple(name for name in given["namespace"].split(".") if name)
            item = await of.aget(namespace, given["key"])
            return item and item.dict()
        case "delete":
            await of.adelete(tuple(given["namespace"]), given["key"])
        case "search":
            found = await of.asearch(
                tuple(given["namespace_prefix"]),
                query=given.get("query") or None,
                filter=given.get("filter"),
                limit=given.get("limit") or 10,
                offset=given.get("offset") or 0,
            )
            return {"items": [one.dict() for one in found]}
        case "namespaces":
            namespaces = await of.alist_namespaces(
                prefix=given.get("prefix"),
                suffix=given.get("suffix"),
                max_depth=given.get("max_depth"),
                limit=given.get("limit") or 100,
                offset=given.get("offset") or 0,
            )
            return {"namespaces": namespaces}
    return None


async def authorize(project: Project, order: dict[str, Any]) -> dict[str, Any]:
    return await _auth.authorize(project.auth, project.http, order)


ANSWERS = {
    "authorize": authorize,
    "copy": copy,
    "delete": _threads.delete,
    "describe": describe,
    "edit": edit,
    "state": state,
    "store": store,
    "threads": _threads.page,
}
