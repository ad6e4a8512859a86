"""The process of graphs: blocked, left with forked processes, kept from keys, and killed in the demo."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hosted_server import PROGRAM, Server, count_of, part_of, thread_of

KEY = "aa" * 32
GRAPHS = "blocking forking leaving leaving_thread paused shown steps stopping typed waiting".split()


@pytest.fixture(scope="module")
def server(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    graphs = {name: f"./graphs.py:{name}" for name in GRAPHS}
    server = Server(tmp_path_factory.mktemp("home"), database, graphs, "hosted_shapes", store={"ttl": {"sweep_interval_minutes": 0.01}})
    (server.home / "perihelion.toml").write_text('[encryption]\nkeys = ["k1=env:HOSTED_KEY"]\n')
    server.environment["HOSTED_KEY"] = KEY
    server.start()
    yield server
    server.kill()


def wait_for_text(path: Path, text: str) -> None:
    for _ in range(600):
        if text in path.read_text():
            return
        time.sleep(0.1)
    raise TimeoutError(f"no {text!r} in {path.read_text()}")


def test_a_blocked_loop_is_shown_and_a_cancelled_run_replaces_its_process(server: Server) -> None:
    client = server.client
    thread = thread_of(client)
    run = client.runs.create(thread, "blocking", input={"to": "600"})
    wait_for_text(server.home / "server.log", "the event loop of the graphs is blocked")
    assert "time.sleep" in (server.home / "server.log").read_text()
    client.runs.cancel(thread, run["run_id"], wait=True)
    assert client.runs.get(thread, run["run_id"])["status"] == "interrupted"
    ended: Any = client.runs.wait(None, "steps", input={})
    assert ended["log"] == [0, 1, 2, 3]


def test_a_process_that_dies_with_a_forked_one_is_replaced(server: Server, tmp_path: Path) -> None:
    ended: Any = server.client.runs.wait(None, "forking", input={"to": str(tmp_path / f"forked-{os.getpid()}")})
    assert ended["log"] == ["alive"]


@pytest.mark.parametrize(
    ("graph", "error"),
    [("leaving", "SystemExit"), ("leaving_thread", "SystemExit"), ("stopping", "KeyboardInterrupt")],
)
def test_an_exit_of_a_node_ends_its_run_alone(server: Server, tmp_path: Path, graph: str, error: str) -> None:
    client, file = server.client, tmp_path / f"{graph}-{os.getpid()}"
    thread = thread_of(client)
    run = client.runs.create(thread, "waiting", input={"to": str(file)})
    runs = file.with_suffix(".runs")
    runs.touch()
    wait_for_text(runs, "run")
    parts = list(client.runs.stream(None, graph, input={"to": "an-exit"}))
    assert part_of(parts, "error") == [{"error": error, "message": "an-exit"}]
    file.touch()
    ended: Any = client.runs.join(thread, run["run_id"])
    assert ended["log"] == ["over"] and runs.read_text() == "run\n"


def test_objects_in_channels_keep_their_classes_between_runs_and_processes(server: Server) -> None:
    client, thread = server.client, thread_of(server.client)
    for turn in range(2):
        client.runs.wait(thread, "typed", input={})
        if turn:
            for child in server.children():
                os.kill(child, signal.SIGKILL)
        ended: Any = client.runs.wait(thread, "typed", command={"resume": True})
        assert ended["log"][-2 - turn :] == [*["Item"] * (turn + 1), "Context"], ended


def test_items_of_the_store_expire_and_are_deleted(server: Server) -> None:
    store, ttl = server.client.store, 2 / 60
    store.put_item(["brief"], "k", {"n": 1}, ttl=ttl)  # type: ignore[arg-type]
    item: Any = store.get_item(["brief"], "k")
    assert item["value"] == {"n": 1}
    deadline = time.monotonic() + 30
    while count_of(server.database, "items", "namespace = 'brief.'") and time.monotonic() < deadline:
        time.sleep(0.2)
        # Reading does not extend the life of an item.
        item = store.get_item(["brief"], "k")
    assert not count_of(server.database, "items", "namespace = 'brief.'") and not store.get_item(["brief"], "k")


def test_keys_encrypt_checkpoints_and_do_not_reach_the_graphs(server: Server) -> None:
    client = server.client
    ended: Any = client.runs.wait(None, "shown", input={})
    assert ended["log"][2] is None
    thread = thread_of(client)
    client.runs.wait(thread, "paused", input={"to": "a-rare-word"})
    server.kill()
    if server.database.startswith("sqlite:"):
        files = Path(server.database.removeprefix("sqlite:")).parent.glob("*.db*")
        assert not any(b"a-rare-word" in file.read_bytes() for file in files)
    server.start()
    ended = server.client.runs.wait(thread, "paused", input=None)
    assert ended["log"] == ["a", "b"]


def test_the_demo_kills_its_process_twice_and_refunds_once(tmp_path: Path) -> None:
    environment = {**os.environ, "VIRTUAL_ENV": sys.prefix, "XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)}
    command = [PROGRAM, "demo", "--python", "--database", f"sqlite:{tmp_path / 'demo.db'}"]
    ended = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    killed = re.findall(r"killing the process of the graph \(\d+\) during the tool (\w+)", ended.stdout)
    assert killed == ["find_order", "refund"], ended.stdout
    assert "2 kills, 1 refund in the bank's book" in ended.stdout
    assert "is refunded" in ended.stdout and "refunds · run 1 done" in ended.stdout
    assert "serve --graphs" in ended.stderr
