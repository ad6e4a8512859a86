"""The user of a run, as nodes see it in `langgraph_auth_user`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def without_reserved(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields of a client's context and config without users, which the server names, and LangGraph's own."""
    return {name: value for name, value in given.items() if not name.startswith(("langgraph_auth_", "__"))}


class User(dict[str, Any]):
    """A user by attributes and by keys, as `langgraph_sdk.auth.types.BaseUser` has it."""

    def __init__(self, identity: str, permissions: Sequence[str] = (), fields: Mapping[str, Any] | None = None) -> None:
        usual = {"identity": identity, "display_name": identity, "is_authenticated": True}
        super().__init__(usual | dict(fields or {}) | {"identity": identity, "permissions": list(permissions)})

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None
