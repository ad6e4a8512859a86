"""The types that stored values may have: LangGraph hands those in the state of a graph to its checkpointer."""

from __future__ import annotations

import sys
import types
from typing import Any, get_origin

_COLLECTED = {"list", "set", "tuple", "dict", "deque", "frozenset"}


def collect_types_of_graphs() -> None:
    """Makes LangGraph hand over the types in the state of a graph, as LANGGRAPH_STRICT_MSGPACK does.

    Savers that load every type ignore them, so no other saver changes.
    """
    try:
        from langgraph._internal import _serde
        from langgraph.pregel import Pregel
    except ImportError:
        return
    found = vars(_serde)
    found["STRICT_MSGPACK_ENABLED"] = True
    apply: Any = getattr(Pregel, "_apply_checkpointer_allowlist", None)
    if apply is not None and not hasattr(apply, "is_late"):
        Pregel._apply_checkpointer_allowlist = _late(apply, _serde.build_serde_allowlist)  # type: ignore[method-assign]
    if sys.version_info < (3, 11) and not hasattr(found.get("_collect_from_type"), "is_guarded"):
        found["_collect_from_type"] = _guarded(found["_collect_from_type"])


def _late(apply: Any, collect: Any) -> Any:
    """Collects the types of a graph that has none yet: it was compiled before, or is a copy of another."""

    def late(graph: Any, checkpointer: Any) -> Any:
        if graph._serde_allowlist is None:
            graph._serde_allowlist = collect(schemas=_schemas(graph), channels=graph.channels)
        return apply(graph, checkpointer)

    late.is_late = True  # type: ignore[attr-defined]
    return late


def _schemas(graph: Any) -> list[Any]:
    """Returns the types that `StateGraph.compile` collects from; those of other graphs are in their channels."""
    builder = getattr(graph, "builder", None)
    if builder is None:
        return [graph.context_schema]
    inputs = [*builder.nodes.values(), *(one for branch in builder.branches.values() for one in branch.values())]
    own = (builder.state_schema, builder.input_schema, builder.output_schema, builder.context_schema)
    return [*own, *(one.input_schema for one in inputs)]


def _guarded(collect: Any) -> Any:
    """Leaves out types such as `Sequence[int]`, which Python 3.10 takes for classes, and LangGraph fails on."""

    def guarded(kind: Any, *rest: Any) -> None:
        if not isinstance(kind, types.GenericAlias) or getattr(get_origin(kind), "__name__", "") in _COLLECTED:
            collect(kind, *rest)

    guarded.is_guarded = True  # type: ignore[attr-defined]
    return guarded
