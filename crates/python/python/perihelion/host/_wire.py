"""Frames between the server and this process: a length of four bytes, then JSON."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import struct
import traceback
from collections.abc import Mapping
from enum import Enum
from typing import Any

import orjson

OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY

LONGEST = 256 << 20
"""Bytes of a frame at most."""


def encode(value: Any) -> bytes:
    """Encodes values of a graph as clients of LangGraph's servers see them."""
    try:
        return orjson.dumps(value, default=_plain, option=OPTIONS)
    except orjson.JSONEncodeError:
        return orjson.dumps(_encodable(value), option=OPTIONS)


def _encodable(value: Any) -> Any:
    """Replaces what orjson refuses, such as whole numbers beyond 64 bits and lone surrogates; the rest stays the same."""
    if isinstance(value, Enum):
        return _encodable(value.value)
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, int) and not isinstance(value, bool):
        return value if -(2**63) <= value < 2**64 else orjson.Fragment(str(int(value)))
    if isinstance(value, dict):
        return {_key(key): _encodable(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_asdict"):
        return [_encodable(one) for one in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        shown = [one.name for one in dataclasses.fields(value) if not one.name.startswith("_")]
        return {name: _encodable(getattr(value, name)) for name in shown}
    try:
        orjson.dumps(value, option=OPTIONS)
        return value
    except orjson.JSONEncodeError:
        return _encodable(_plain(value))


def _key(key: Any) -> Any:
    try:
        orjson.dumps({key: None}, option=OPTIONS)
        return key
    except orjson.JSONEncodeError:
        return str(key).encode(errors="replace").decode()


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump") and callable(value.model_dump) and not isinstance(value, type):
        return value.model_dump()
    if hasattr(value, "dict") and callable(value.dict) and not isinstance(value, type):
        return value.dict()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return value._asdict()
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, BaseException):
        return {"error": type(value).__name__, "message": str(value)}
    if hasattr(value, "node") and hasattr(value, "arg"):
        return {"node": value.node, "input": value.arg}
    if isinstance(value, int):
        return str(value)
    return repr(value)


def describe_error(error: BaseException) -> dict[str, str]:
    """Describes an error for the server, with its traceback."""
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    try:
        message = str(error)
    except Exception as unreadable:
        message = f"its text cannot be read: {type(unreadable).__name__}"
    return {"kind": "error", "error": type(error).__name__, "message": message, "traceback": "".join(lines)}


async def read(reader: asyncio.StreamReader) -> dict[str, Any]:
    (length,) = struct.unpack(">I", await reader.readexactly(4))
    frame: dict[str, Any] = orjson.loads(await reader.readexactly(length))
    return frame


class Writer:
    """Writes frames, each whole; waits while the server is behind."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def send(self, frame: Mapping[str, Any]) -> None:
        data = encode(frame)
        if len(data) > LONGEST:
            raise ValueError(f"a value of a graph has {len(data)} bytes of JSON; the most are {LONGEST}")
        self._writer.write(struct.pack(">I", len(data)) + data)
        await self._writer.drain()
