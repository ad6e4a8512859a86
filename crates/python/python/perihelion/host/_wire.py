"""Frames between the server and this process: a length of four bytes, then JSON."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
import struct
import traceback
from collections.abc import Mapping
from typing import Any

import orjson

LONGEST = 256 << 20
"""Bytes of a frame at most."""


def encode(value: Any) -> bytes:
    """Encodes values of a graph as clients of LangGraph's servers see them."""
    options = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
    try:
        return orjson.dumps(value, default=_plain, option=options)
    except orjson.JSONEncodeError:
        # Whole numbers beyond 64 bits, lone surrogates, and the like.
        text = json.dumps(value, default=_plain, ensure_ascii=False)
        if "NaN" in text or "Infinity" in text:
            text = json.dumps(json.loads(text, parse_constant=lambda _: None), ensure_ascii=False)
        return text.encode(errors="replace")


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump") and callable(value.model_dump):
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
