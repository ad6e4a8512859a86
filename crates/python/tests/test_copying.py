"""Databases of PostgresSaver and SqliteSaver are copied with their history."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from databases import POSTGRES, drop_database, new_database
from graphs import config, counting, rows
from langchain_core.load import dumpd
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import interrupt
from perihelion import PerihelionSaver
from perihelion.copying import copy_from

AES = EncryptedSerializer.from_pycryptodome_aes(key=b"k" * 16)


def fill(saver: BaseCheckpointSaver[Any]) -> list[Any]:
    graph = counting(25).compile(checkpointer=saver)
    for thread in ("one", "two"):
        graph.invoke({"messages": [HumanMessage("hello", id="h")], "items": []}, config(thread))
    graph.update_state(config("one"), {"messages": [AIMessage("edited", id="m3"), RemoveMessage(id="m7")]})

    def ask(state: Any) -> Any:
        return {"items": [interrupt("sure?")]}

    builder = counting(25)
    builder.add_node("ask", ask)
    builder.add_edge("node", "ask")
    builder.compile(checkpointer=saver).invoke({"messages": [], "items": []}, config("asks"))
    return list(saver.list(None))


def assert_same(saver: PerihelionSaver, expected: list[Any]) -> None:
    found = {one.config["configurable"]["checkpoint_id"]: one for one in saver.list(None)}
    assert len(found) == len(expected)
    for one in expected:
        copy = found[one.config["configurable"]["checkpoint_id"]]
        assert copy.checkpoint == one.checkpoint
        assert copy.parent_config == one.parent_config
        assert copy.metadata == one.metadata
        assert sorted(copy.pending_writes or [], key=str) == sorted(one.pending_writes or [], key=str)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.skipif(not POSTGRES, reason="no server"))])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "sqlite":
        path = str(tmp_path / "old.db")
        with SqliteSaver.from_conn_string(path) as saver:
            yield path, saver, saver.conn.close
    else:
        from langgraph.checkpoint.postgres import PostgresSaver

        name, url = new_database()
        with PostgresSaver.from_conn_string(url) as saver:
            saver.setup()
            yield url, saver, lambda: None
        drop_database(name)


def test_rows_in_json_of_an_older_saver_become_messages(address: str, tmp_path: Path) -> None:
    path = str(tmp_path / "old.db")
    old = {"v": 1, "id": "1", "ts": "", "channel_versions": {"messages": 2, "count": 2}, "versions_seen": {}}
    values = {"messages": [dumpd(HumanMessage("hello", id="h"))], "count": 3}
    with SqliteSaver.from_conn_string(path) as saver:
        saver.setup()
        row = ("one", "", "1", None, "json", json.dumps({**old, "channel_values": values}).encode(), b"{}")
        saver.conn.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        saver.conn.commit()
    with PerihelionSaver.from_conn_string(address) as target:
        copy_from(path, target)
        found = target.get_tuple(config("one"))
        assert found and found.checkpoint["channel_values"] == {"messages": [HumanMessage("hello", id="h")], "count": 3}


@pytest.mark.parametrize("serde", [None, AES], ids=["plain", "aes"])
@pytest.mark.parametrize("target", [{}, {"encryption_key": b"k" * 16}, {"serde": AES}], ids=["plain", "sealed", "aes"])
def test_a_database_is_copied(source: Any, address: str, serde: Any, target: dict[str, Any]) -> None:
    path, old, close = source
    if serde:
        old.serde = serde
    expected = fill(old)
    close()
    with PerihelionSaver.from_conn_string(address, **target) as saver:
        copied = copy_from(path, saver, serde=serde)
        assert (copied.threads, copied.checkpoints) == (3, len(expected))
        assert_same(saver, expected)
        whole = [row for row in rows(saver, "values") if row[2] == "items" and row[4] is None]
        assert len(whole) < 10 or "serde" in target
        again = copy_from(path, saver, serde=serde)
        assert again.checkpoints == 0
        graph = counting(30).compile(checkpointer=saver)
        graph.invoke({"items": ["more"]}, config("one"))
        assert len(graph.get_state(config("one")).values["items"]) == 30
