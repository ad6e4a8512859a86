"""Threads and event loops together, processes, keys, types and files."""

from __future__ import annotations

import asyncio
import multiprocessing
import operator
import os
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from graphs import Thread, config, counting
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.func import entrypoint
from langgraph.graph import StateGraph
from langgraph.types import Command, interrupt
from perihelion import AsyncPerihelionSaver, PerihelionSaver, PerihelionStore, copy_from

START: dict[str, Any] = {"messages": [], "items": []}


def test_many_threads_share_a_saver(address: str) -> None:
    with PerihelionSaver.from_conn_string(address) as saver:
        graph = counting(15).compile(checkpointer=saver)
        runs = [threading.Thread(target=graph.invoke, args=(START, config(f"t{i}"))) for i in range(12)]
        for run in runs:
            run.start()
        for run in runs:
            run.join()
        for i in range(12):
            assert len(graph.get_state(config(f"t{i}")).values["messages"]) == 15


async def test_threads_and_tasks_share_a_saver(address: str) -> None:
    async with AsyncPerihelionSaver.from_conn_string(address) as saver:
        graph = counting(12).compile(checkpointer=saver)
        tasks = [graph.ainvoke(START, config(f"a{i}")) for i in range(6)]
        threads = [asyncio.to_thread(graph.invoke, START, config(f"t{i}")) for i in range(6)]
        await asyncio.gather(*tasks, *threads)
        # A synchronous call on the loop of the saver returns.
        assert len(graph.get_state(config("a3")).values["items"]) == 12
        assert len((await graph.aget_state(config("t3"))).values["items"]) == 12


def test_a_saver_is_used_from_several_loops(address: str) -> None:
    with PerihelionSaver.from_conn_string(address) as saver:
        graph = counting(8).compile(checkpointer=saver)
        for i in range(3):
            asyncio.run(graph.ainvoke(START, config(f"t{i}")))
        assert len({one.config["configurable"]["thread_id"] for one in saver.list(None)}) == 3


async def test_a_commit_survives_the_task_that_awaited_it(address: str) -> None:
    async with AsyncPerihelionSaver.from_conn_string(address) as saver:
        checkpoint = empty_checkpoint()
        put = asyncio.create_task(saver.aput(config(checkpoint_ns=""), checkpoint, {"step": 1}, {}))
        await asyncio.sleep(0)
        put.cancel()
        with pytest.raises(asyncio.CancelledError):
            await put
        for _ in range(500):
            if found := await saver.aget_tuple(config()):
                break
            await asyncio.sleep(0.01)
        assert found and found.checkpoint["id"] == checkpoint["id"]


def in_child(saver: PerihelionSaver, results: Any) -> None:
    thread = Thread(saver, "child")
    thread.put([1, 2, 3])
    results.put(thread.get())


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
def test_a_saver_works_after_a_fork(address: str) -> None:
    if address == ":memory:":
        pytest.skip("memory is not shared")
    with PerihelionSaver.from_conn_string(address) as saver:
        Thread(saver, "parent").put([1])
        processes = multiprocessing.get_context("fork")
        results = processes.Queue()
        child = processes.Process(target=in_child, args=(saver, results))
        child.start()
        assert results.get(timeout=60) == [1, 2, 3]
        child.join(60)
        assert child.exitcode == 0
        assert Thread(saver, "parent").get(config("parent")) == [1]
        assert Thread(saver, "child").get(config("child")) == [1, 2, 3]


def test_an_encrypted_database_shows_nothing_and_needs_its_key(tmp_path: Path) -> None:
    path = tmp_path / "agents.db"
    old, new = b"o" * 32, b"n" * 16
    with PerihelionSaver.from_conn_string(str(path), encryption_key=old) as saver:
        Thread(saver).put(["a secret that is not to be seen", "x" * 500])
    assert b"a secret" not in path.read_bytes()
    with PerihelionSaver.from_conn_string(str(path), encryption_key=[new, old]) as saver:
        assert Thread(saver).get(config())[0].startswith("a secret")
        Thread(saver, "u").put(["new"])
    for keys in (None, new, b"w" * 32):
        with (
            PerihelionSaver.from_conn_string(str(path), encryption_key=keys) as saver,
            pytest.raises(ValueError, match="encryption_key"),
        ):
            saver.get_tuple(config())
    with pytest.raises(ValueError, match="16 or 32 bytes"):
        PerihelionSaver(str(path), encryption_key=b"short")


class Custom:
    """A type of a program, with fields as pydantic has them."""

    def __init__(self, text: str) -> None:
        self.text = text

    def model_dump(self) -> dict[str, str]:
        return {"text": self.text}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Custom) and other.text == self.text


def test_types_outside_the_list_are_not_loaded(address: str) -> None:
    with PerihelionSaver.from_conn_string(address) as saver:
        thread = Thread(saver)
        thread.put([Custom("a"), "b"])
        first = thread.get()[0]
        assert not isinstance(first, Custom)
        allowing = saver.with_allowlist({(Custom.__module__, "Custom")})
        assert allowing is not saver
        found = allowing.get_tuple(config())
        assert found and found.checkpoint["channel_values"]["list"] == [Custom("a"), "b"]
    with PerihelionSaver.from_conn_string(address, allowed_types=[Custom]) as saver:
        thread = Thread(saver, "u")
        thread.put([Custom("a")])
        thread.put([Custom("a"), Custom("b")])
        assert thread.get() == [Custom("a"), Custom("b")]


def test_a_second_sqlite_library_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "agents.db"
    with PerihelionSaver.from_conn_string(str(path)) as saver:
        Thread(saver).put([1])
        for address in (str(path), path, f"file:{path}?mode=ro", str(tmp_path / "." / "agents.db")):
            with pytest.raises(RuntimeError, match="second SQLite library"):
                sqlite3.connect(address, uri=str(address).startswith("file:"))
        sqlite3.connect(tmp_path / "another.db").close()
        with PerihelionSaver.from_conn_string(str(path)) as second:
            assert Thread(second).get(config()) == [1]
    connection = sqlite3.connect(path)
    connection.execute("SELECT count(*) FROM perihelion_checkpoints")
    with pytest.raises(RuntimeError, match="another SQLite library"):
        PerihelionSaver(str(path))
    connection.close()
    with PerihelionSaver.from_conn_string(str(path)) as saver:
        assert Thread(saver).get(config()) == [1]


@dataclass
class Point:
    x: int


class Named(TypedDict, total=False):
    name: str


class Places(Named, total=False):
    first: Point
    rest: Annotated[list[Point], operator.add]


def added(state: Places) -> dict[str, Any]:
    return {"first": Point(1), "rest": [Point(2)]}


def answered(state: Places) -> dict[str, Any]:
    assert all(isinstance(one, Point) for one in (state["first"], *state["rest"])) and interrupt("sure?")
    return {"rest": [Point(3)]}


def places() -> StateGraph[Places]:
    return StateGraph(Places).add_sequence([added, answered]).add_edge("__start__", "added")


def counted(point: Point, *, previous: Any = None) -> Point:
    return Point(previous.x + point.x if previous else point.x)


# LangGraph does not read these annotations from their texts.
counted.__annotations__.update({"point": Point, "return": Point})


SHAPES: dict[str, Callable[[], Any]] = {
    "compiled": lambda: places().compile(),
    "copied": lambda: places().compile().with_config(tags=["a"]),
    "subgraph": lambda: StateGraph(Named).add_node("sub", places().compile()).add_edge("__start__", "sub").compile(),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_graph_that_was_compiled_before_its_saver_loads_its_types(
    address: str, shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("langgraph._internal._serde.STRICT_MSGPACK_ENABLED", False)
    app = SHAPES[shape]()
    monkeypatch.undo()
    with PerihelionSaver.from_conn_string(address) as saver:
        app.checkpointer = saver
        app.invoke({}, config())
        assert "__interrupt__" not in app.invoke(Command(resume=True), config())


def test_an_entrypoint_that_was_made_before_its_saver_loads_its_types(address: str) -> None:
    app = entrypoint()(counted).copy()
    with PerihelionSaver.from_conn_string(address) as saver:
        app.checkpointer = saver
        assert [app.invoke(Point(2), config()).x for _ in range(2)] == [2, 4]


VISIT = """
import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as connection:
    connection.execute("CREATE TABLE IF NOT EXISTS visits (n)")
    connection.execute("INSERT INTO visits VALUES (1)")
print(connection.execute("SELECT count(*) FROM perihelion_checkpoints").fetchone()[0])
connection.close()
"""


def visit(path: Path) -> int:
    """Opens, writes and closes a file in another process; returns how many checkpoints it has."""
    return int(subprocess.run([sys.executable, "-c", VISIT, path], check=True, capture_output=True).stdout)


def test_another_process_comes_and_goes_without_loss(tmp_path: Path) -> None:
    path = tmp_path / "agents.db"
    with PerihelionSaver.from_conn_string(str(path)) as saver, PerihelionStore.from_conn_string(str(path)) as store:
        thread = Thread(saver)
        for number in range(1, 3):
            thread.put([number])
            store.put(("a",), str(number), {})
            assert visit(path) == number
            assert path.with_name("agents.db-wal").exists()
        with PerihelionStore.from_conn_string(str(path)) as second:
            assert len(second.search(("a",))) == 2
        assert visit(path) == 2 and path.with_name("agents.db-wal").exists()


DAEMON = """
import os, sys, time
from graphs import Thread
from perihelion import PerihelionSaver
from test_saver import visit
from pathlib import Path
path = Path(sys.argv[1])
saver = PerihelionSaver(str(path))
Thread(saver, "parent").put([1])
read, write = os.pipe()
if os.fork():
    os.close(write)
    os.read(read, 1)
    os._exit(0)
thread = Thread(saver, "child")
thread.put([1])
os.write(write, b"x")
os.close(write)
time.sleep(0.5)
seen = [visit(path)]
thread.put([1, 2])
seen.append(visit(path))
print(seen, path.with_name("agents.db-wal").exists(), flush=True)
"""


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
def test_a_forked_process_that_outlives_its_parent_loses_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", DAEMON, tmp_path / "agents.db"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    ended = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    assert ended.stdout.strip() == "[2, 3] True"


def test_threads_write_while_their_process_is_forked(address: str) -> None:
    with PerihelionSaver.from_conn_string(address) as saver:
        graph = counting(40).compile(checkpointer=saver)
        runs = [threading.Thread(target=graph.invoke, args=(START, config(f"t{i}"))) for i in range(4)]
        for run in runs:
            run.start()
        while any(run.is_alive() for run in runs):
            child = os.fork()
            if not child:
                os._exit(0)
            os.waitpid(child, 0)
        for i in range(4):
            assert len(graph.get_state(config(f"t{i}")).values["messages"]) == 40


def test_a_refused_saver_leaves_the_locks_of_the_other_library(tmp_path: Path) -> None:
    path = tmp_path / "agents.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = wal")
    connection.execute("CREATE TABLE perihelion_checkpoints (n)")
    with pytest.raises(RuntimeError, match="another SQLite library"):
        PerihelionSaver(str(path))
    visit(path)
    assert path.with_name("agents.db-wal").exists()
    connection.close()


def test_a_file_that_is_only_read_is_not_made(tmp_path: Path) -> None:
    with PerihelionSaver.from_conn_string(":memory:") as saver, pytest.raises(RuntimeError, match="unable to open"):
        copy_from(str(tmp_path / "typo.db"), saver)
    assert not (tmp_path / "typo.db").exists()


def test_versions_of_other_savers_continue_in_their_format() -> None:
    saver = PerihelionSaver(":memory:")
    first = saver.get_next_version(None, None)
    assert saver.get_next_version(first, None) > first
    assert saver.get_next_version(7, None) == 8
    old = f"{9:032}.0.123"
    assert saver.get_next_version(old, None).startswith(f"{10:032}.")


def test_a_closed_saver_says_so(address: str) -> None:
    saver = PerihelionSaver(address)
    saver.setup()
    saver.close()
    with pytest.raises(RuntimeError, match="closed"):
        saver.get_tuple(config())


def test_a_server_that_is_not_there_is_named() -> None:
    saver = PerihelionSaver("postgresql://nobody@127.0.0.1:1/none?connect_timeout=2")
    with pytest.raises(ConnectionError, match="PostgreSQL cannot be reached"):
        saver.setup()


@pytest.mark.parametrize(
    "words",
    [
        "password=a?b sslmode=require",
        "password='a  \\' ?b' sslmode='require'",
        "password=a sslmode = require",
    ],
)
def test_nothing_is_sent_in_clear_where_tls_is_required(words: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)
        received: list[bytes] = []

        def refuse_tls() -> None:
            client, _ = server.accept()
            with client:
                client.settimeout(10)
                received.append(client.recv(8))
                client.sendall(b"N")
                received.append(client.recv(1024))

        refusing = threading.Thread(target=refuse_tls)
        refusing.start()
        port = server.getsockname()[1]
        saver = PerihelionSaver(f"host=127.0.0.1 port={port} user=a {words}")
        with pytest.raises(ConnectionError):
            saver.setup()
        refusing.join()
    assert received == [b"\x00\x00\x00\x08\x04\xd2\x16\x2f", b""]


def test_a_serialiser_of_ones_own_is_used(address: str) -> None:
    with PerihelionSaver.from_conn_string(address, serde=JsonPlusSerializer(pickle_fallback=True)) as saver:
        thread = Thread(saver)
        thread.put([memoryview])
        thread.put([memoryview, 1])
        assert thread.get() == [memoryview, 1]
