"""The `http` settings of a `langgraph.json`: routes that are off, and headers that runs receive in their config."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

SECRET = {"authorization", "cookie", "x-api-key", "x-csrf-token", "x-service-key", "x-tenant-id"}
"""Headers that no run receives."""


class Http:
    def __init__(self, settings: dict[str, Any]) -> None:
        self.off = {name.removeprefix("disable_") for name, value in settings.items() if name.startswith("disable_") and value}
        patterns = settings.get("configurable_headers") or {}
        self.includes: list[str] = patterns.get("includes") or patterns.get("include") or []
        self.excludes: list[str] = patterns.get("excludes") or patterns.get("exclude") or []

    def is_off(self, parts: list[str]) -> bool:
        """Whether the routes of an address are off."""
        first = parts[0] if parts else ""
        kind = "runs" if "runs" in parts[:3] and first == "threads" else "meta" if first in ("ok", "info") else first
        return kind in self.off

    def headers(self, given: list[tuple[str, str]]) -> dict[str, str]:
        """Returns the headers that a run receives."""
        return {
            name: value
            for name, value in given
            if name not in SECRET
            and any(fnmatchcase(name, one) for one in self.includes)
            and not any(fnmatchcase(name, one) for one in self.excludes)
        }
