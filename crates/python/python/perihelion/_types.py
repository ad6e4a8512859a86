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
    except ImportError:
        return
    found = vars(_serde)
    found["STRICT_MSGPACK_ENABLED"] = True
    if sys.version_info < (3, 11) and not hasattr(found.get("_collect_from_type"), "is_guarded"):
        found["_collect_from_type"] = _guarded(found["_collect_from_type"])


def _guarded(collect: Any) -> Any:
    """Leaves out types such as `Sequence[int]`, which Python 3.10 takes for classes, and LangGraph fails on."""

    def guarded(kind: Any, *rest: Any) -> None:
        if not isinstance(kind, types.GenericAlias) or getattr(get_origin(kind), "__name__", "") in _COLLECTED:
            collect(kind, *rest)

    guarded.is_guarded = True  # type: ignore[attr-defined]
    return guarded
