"""Values of channels as rows: whole, or as the change to an older row of the same channel.

A list or dict is compared with the elements of the version before it, which are held here. Elements that are the same
objects are kept, the others are encoded. So a step that appends one message stores one message.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import ormsgpack
from langgraph.checkpoint.serde.base import SerializerProtocol

from perihelion._native import Elements, Seal, assemble, splice

Key = tuple[str, str, str]
"""Thread, namespace and channel."""

PLAIN = "msgpack"
"""The type tag of bytes that the core may read."""

LONGEST_CHAIN = 4096
"""A chain of changes is ended by a whole value after so many rows, or as many as the whole value has elements."""

WASTE = 16_384
"""A chain is also ended once it is longer than twice its value and this many bytes."""

INLINE_TEXT = 64
"""Texts up to this length are stored in the row of the checkpoint."""


@dataclass
class Version:
    """The newest stored version of a channel, as far as this process knows."""

    version: str
    root: str
    rows: int
    stored: int
    elements: Elements


@dataclass
class Row:
    """A row of a value: whole if it has no base."""

    channel: str
    version: str
    base: str | None
    root: str
    kind: str
    parts: bytes
    data: bytes

    def sealed(self, seal: Seal) -> bytes:
        return seal.seal(ormsgpack.packb((self.kind, self.parts, self.data)), f"value:{self.channel}")


def is_inline(value: Any) -> bool:
    """Whether a value is stored in the row of each checkpoint that has it."""
    kind = type(value)
    if kind is str:
        return len(value) <= INLINE_TEXT
    if kind is list or kind is dict:
        return not value
    return value is None or kind is bool or kind is int or kind is float


def _is_sequence(data: bytes) -> bool:
    """Whether MessagePack is an array or a map."""
    return 0x80 <= data[0] <= 0x9F or 0xDC <= data[0] <= 0xDF


class Cache:
    """The newest versions of channels, least recently used ones forgotten."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._versions: OrderedDict[Key, Version] = OrderedDict()

    def take(self, key: Key) -> Version | None:
        """Takes a version out, so that no other step builds on it meanwhile."""
        with self._lock:
            return self._versions.pop(key, None)

    def store(self, versions: Iterable[tuple[Key, Version]]) -> None:
        with self._lock:
            for key, version in versions:
                self._versions[key] = version
                self._versions.move_to_end(key)
            while len(self._versions) > self._size:
                self._versions.popitem(last=False)

    def drop(self, threads: Iterable[str] | None = None) -> None:
        """Forgets the versions of some threads, or all."""
        with self._lock:
            if threads is None:
                self._versions.clear()
            else:
                gone = set(threads)
                for key in [key for key in self._versions if key[0] in gone]:
                    del self._versions[key]


class Encoder:
    """Makes rows of values, and values of rows."""

    def __init__(self, serde: SerializerProtocol, cache: Cache, strict: bool) -> None:
        self.serde = serde
        self.cache = cache
        self.strict = strict

    def encode(self, key: Key, version: Any, value: Any, is_whole: bool = False) -> tuple[Row, Version | None]:
        """Returns the row of a new value, and what to hold of it once it is stored."""
        kind = type(value)
        if (kind is not list and kind is not dict) or not isinstance(version, str):
            return self._whole(key, version, value)
        before = self.cache.take(key)
        if before is None or is_whole or before.version >= version:
            return self._whole(key, version, value)
        found = None if self.strict else self._by_identity(key, version, value, before)
        return found or self._by_bytes(key, version, value, before)

    def _by_identity(self, key: Key, version: str, value: Any, before: Version) -> tuple[Row, Version] | None:
        change = before.elements.diff(value)
        if change is None:
            return None
        parts, added, kept, inserted = change
        if kept == 0 or inserted > kept + 8:
            return None
        kind, data = self.serde.dumps_typed(added)
        if self._is_outweighed(before, len(data)):
            return None
        before.elements.advance(parts, added, data, kind == PLAIN)
        row = Row(key[2], version, before.version, before.root, kind, parts, data)
        return row, Version(version, before.root, before.rows + 1, before.stored + len(data), before.elements)

    def _by_bytes(self, key: Key, version: str, value: Any, before: Version) -> tuple[Row, Version | None]:
        kind, data = self.serde.dumps_typed(value)
        change = before.elements.diff_encoded(data) if kind == PLAIN else None
        whole = self._row(key, version, value, kind, data)
        if change is None or change[2] == 0 or self._is_outweighed(before, len(change[1])):
            return whole
        parts, added, _, _ = change
        if len(added) * 2 > len(data) or whole[1] is None:
            return whole
        row = Row(key[2], version, before.version, before.root, kind, parts, added)
        stored = before.stored + len(added)
        return row, Version(version, before.root, before.rows + 1, stored, whole[1].elements)

    def _is_outweighed(self, before: Version, added: int) -> bool:
        longest = max(LONGEST_CHAIN, len(before.elements))
        return before.rows >= longest or before.stored + added > 2 * (before.elements.size + added) + WASTE

    def _whole(self, key: Key, version: Any, value: Any) -> tuple[Row, Version | None]:
        kind, data = self.serde.dumps_typed(value)
        return self._row(key, version, value, kind, data)

    def _row(self, key: Key, version: Any, value: Any, kind: str, data: bytes) -> tuple[Row, Version | None]:
        text = str(version)
        row = Row(key[2], text, None, text, kind, b"", bytes(data))
        return row, self._first(text, value, kind, data) if isinstance(version, str) else None

    def _first(self, version: str, value: Any, kind: str, data: bytes) -> Version | None:
        if type(value) is not list and type(value) is not dict:
            return None
        if kind == PLAIN and not _is_sequence(data):
            return None  # The fields of an object of a type that may not be loaded.
        return Version(version, version, 1, len(data), Elements(value, data, kind == PLAIN))

    def decode(self, chain: list[Row]) -> tuple[Any, Version | None]:
        """Returns the value of a chain, oldest row first, and what to hold of it."""
        last = chain[-1]
        kind = last.kind
        if all(row.kind == PLAIN for row in chain):
            data = assemble([(row.parts, row.data) for row in chain])
            value = self.serde.loads_typed((PLAIN, data))
        else:
            kind = "mixed" if len(chain) > 1 else kind
            data = b"".join(row.data for row in chain)
            value = self.serde.loads_typed((chain[0].kind, chain[0].data))
            for row in chain[1:]:
                value = splice(row.parts, value, self.serde.loads_typed((row.kind, row.data)))
        held = self._first(last.version, value, kind, data)
        if held is not None:
            held.root = last.root
            held.rows = len(chain)
            held.stored = sum(len(row.data) for row in chain)
        return value, held
