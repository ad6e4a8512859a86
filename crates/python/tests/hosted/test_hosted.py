"""`perihelion serve --graphs`, through the client of LangGraph's servers, with kills of the graphs' process and the server's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from hosted_server import PROGRAM, Server, part_of, thread_of
from langgraph_sdk.client import SyncLangGraphClient

GRAPHS = ["react", "order", "fan", "slow", "broken", "context"]


@pytest.fixture(scope="module")
def server(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    graphs: dict[str, Any] = {name: f"./graphs.py:{name}" for name in GRAPHS}
    graphs["react"] = "./graphs.py:factory"
    graphs["fan"] = {"path": "./graphs.py:fan", "description": "Works in parallel"}
    server = Server(tmp_path_factory.mktemp("home"), database, graphs)
    server.start()
    yield server
    server.kill()


def test_an_agent_answers_and_streams_in_all_modes(client: SyncLangGraphClient) -> None:
    thread = thread_of(client)
    modes: Any = ["values", "updates", "messages-tuple", "messages", "tasks", "checkpoints", "debug"]
    given = {"messages": [{"role": "user", "content": "The weather in Oslo?"}]}
    parts = list(client.runs.stream(thread, "react", input=given, stream_mode=modes))
    events = [part.event for part in parts]
    assert events[0] == "metadata" and "error" not in events
    updates = [part.data for part in parts if part.event == "updates"]
    assert [next(iter(update)) for update in updates] == ["model", "tools", "model"]
    values = [part.data for part in parts if part.event == "values"]
    assert [len(value["messages"]) for value in values] == [1, 2, 3, 4]
    assert values[-1]["messages"][-1]["content"] == "It is sunny in Oslo."
    chunks = [part.data[0]["content"] for part in parts if part.event == "messages"]
    assert "sunny" in chunks and part_of(parts, "messages/partial")[-1][0]["content"] == "It is sunny in Oslo."
    assert {"tasks", "checkpoints", "debug", "messages/metadata"} <= set(events)
    state = client.threads.get_state(thread)
    assert len(state["values"]["messages"]) == 4 and state["next"] == []
    assert client.threads.get(thread)["status"] == "idle"
    history = client.threads.get_history(thread)
    assert [one["next"] for one in history] == [[], ["model"], ["tools"], ["model"], ["__start__"]]
    again = client.runs.wait(thread, "react", input=given)
    assert isinstance(again, dict) and len(again["messages"]) == 8


def test_questions_of_one_node_are_asked_and_answered_one_after_another(server: Server) -> None:
    client = server.client
    thread = thread_of(client)
    parts = list(client.runs.stream(thread, "order", input={"item": "tea"}, stream_mode=["updates", "values"]))
    asked = part_of(parts, "updates")[-1]["__interrupt__"]
    assert [one["value"] for one in asked] == ["Your name?"]
    assert part_of(parts, "values")[-1]["__interrupt__"][0]["value"] == "Your name?"
    state = client.threads.get_state(thread)
    assert state["next"] == ["ask"] and state["tasks"][0]["interrupts"][0]["value"] == "Your name?"
    assert client.threads.get(thread)["status"] == "interrupted"
    client.runs.wait(thread, "order", command={"resume": "Ada"})
    state = client.threads.get_state(thread)
    assert state["tasks"][0]["interrupts"][0]["value"] == {"question": "How many?", "of": "tea"}
    client.runs.wait(thread, "order", command={"resume": {state["tasks"][0]["interrupts"][0]["id"]: 3}})
    state = client.threads.get_state(thread)
    assert state["next"] == ["confirm"]
    assert state["tasks"][0]["interrupts"][0]["value"] == {"confirm": "3 tea for Ada"}
    end: Any = client.runs.wait(thread, "order", command={"resume": True})
    assert end["done"] == ["ask", "confirmed", "shipped"]


def test_an_answer_with_an_update_survives_a_kill(server: Server) -> None:
    client = server.client
    thread = thread_of(client)
    client.runs.wait(thread, "order", input={"item": "tea"})
    client.runs.wait(thread, "order", command={"resume": "Ada", "update": {"item": "coffee", "done": ["edited"]}})
    state = client.threads.get_state(thread)
    assert state["values"] == {"item": "coffee", "done": ["edited"]}
    assert state["tasks"][0]["interrupts"][0]["value"] == {"question": "How many?", "of": "coffee"}
    server.kill()
    server.start()
    server.client.runs.wait(thread, "order", command={"resume": 3})
    end: Any = server.client.runs.wait(thread, "order", command={"resume": True})
    assert end["done"] == ["edited", "ask", "confirmed", "shipped"] and end["amount"] == 3


def test_parallel_questions_in_subgraphs_take_their_answers_in_any_order(client: SyncLangGraphClient) -> None:
    thread = thread_of(client)
    given = {"pieces": ["a", "ask1", "ask2"]}
    parts = list(client.runs.stream(thread, "fan", input=given, stream_mode=["custom", "updates"], stream_subgraphs=True))
    looked = [part.data["looking"] for part in parts if part.event.startswith("custom|piece:")]
    assert sorted(looked) == ["a", "ask1", "ask2"]
    assert any(part.event.startswith("updates|piece:") and part.data == {"look": {"found": ["a"]}} for part in parts)
    open_ = client.threads.get_state(thread)["interrupts"]
    ids = {one["value"]: one["id"] for one in open_}
    assert sorted(ids) == ["ask1", "ask2"]
    client.runs.wait(thread, "fan", command={"resume": {ids["ask2"]: "two"}})
    left = client.threads.get_state(thread)["interrupts"]
    assert [one["value"] for one in left] == ["ask1"] and left[0]["id"] == ids["ask1"]
    end: Any = client.runs.wait(thread, "fan", command={"resume": {ids["ask1"]: "one"}})
    assert end["found"] == ["a", "ask1=one", "ask2=two", "joined"]


def test_a_run_pauses_before_and_after_nodes_and_continues(client: SyncLangGraphClient) -> None:
    thread = thread_of(client)
    given = {"messages": [{"role": "user", "content": "Hi"}]}
    client.runs.wait(thread, "react", input=given, interrupt_before=["tools"])
    state = client.threads.get_state(thread)
    assert state["next"] == ["tools"] and state["interrupts"] == []
    assert client.threads.get(thread)["status"] == "interrupted"
    client.runs.wait(thread, "react", input=None, interrupt_after=["tools"])
    assert client.threads.get_state(thread)["next"] == ["model"]
    end: Any = client.runs.wait(thread, "react", input=None)
    assert len(end["messages"]) == 4


def test_a_state_is_edited_and_an_earlier_one_is_run_again(client: SyncLangGraphClient) -> None:
    thread = thread_of(client)
    client.runs.wait(thread, "slow", input={"steps": 3})
    history = client.threads.get_history(thread)
    second = next(one for one in history if one["values"].get("done") == [0])
    client.threads.update_state(thread, {"done": [7]}, as_node="count", checkpoint=second["checkpoint"])
    state = client.threads.get_state(thread)
    assert state["values"]["done"] == [0, 7] and state["next"] == ["count"]
    end: Any = client.runs.wait(thread, "slow", input=None)
    assert end["done"] == [0, 7, 2]
    end = client.runs.wait(thread, "slow", input=None, checkpoint=second["checkpoint"])
    assert end["done"] == [0, 1, 2]
    end = client.runs.wait(thread, "slow", input={"steps": 5})
    assert end["done"] == [0, 1, 2, 3, 4]


def test_a_copy_of_a_thread_goes_its_own_way(client: SyncLangGraphClient) -> None:
    thread = thread_of(client)
    client.runs.wait(thread, "slow", input={"steps": 2})
    copy = str(client.http.post(f"/threads/{thread}/copy", json={})["thread_id"])
    end: Any = client.runs.wait(copy, "slow", input={"steps": 4})
    assert end["done"] == [0, 1, 2, 3]
    assert client.threads.get_state(thread)["values"]["done"] == [0, 1]


def test_an_exception_is_the_end_of_a_run_which_goes_on_when_it_is_mended(server: Server) -> None:
    client = server.client
    thread = thread_of(client)
    run = client.runs.create(thread, "broken", input={"steps": 1})
    client.runs.join(thread, run["run_id"])
    assert client.runs.get(thread, run["run_id"])["status"] == "error"
    found = client.threads.get(thread)
    assert found["status"] == "error" and "not today" in json.dumps(found)
    (server.home / "fixed").touch()
    end: Any = client.runs.wait(thread, "broken", input=None)
    assert end["done"] == [0, 1]


def test_a_node_sees_config_context_user_and_store(client: SyncLangGraphClient) -> None:
    assistant = client.assistants.create("context", config={"configurable": {"flavour": "mint"}})
    end: Any = client.runs.wait(None, assistant["assistant_id"], input={"steps": 1}, context={"tone": "dry"})
    seen = end["seen"]
    assert seen["tone"] == "dry" and seen["graph"] == "context" and seen["stored"]


def test_graphs_are_described(client: SyncLangGraphClient) -> None:
    found = {one["graph_id"] for one in client.assistants.search(limit=20)}
    assert set(GRAPHS) <= found
    assert "pieces" in json.dumps(client.assistants.get_schemas("fan")["input_schema"])
    drawn = client.assistants.get_graph("react")
    assert {node["id"] for node in drawn["nodes"]} == {"__start__", "model", "tools", "__end__"}
    assert {"source": "model", "target": "tools", "conditional": True} in drawn["edges"]


def test_a_cancelled_run_ends_and_the_thread_takes_another(server: Server) -> None:
    client = server.client
    thread = thread_of(client)
    server.log.write_text("")
    run = client.runs.create(thread, "slow", input={"steps": 50, "pause": 0.2})
    server.wait_for("end 1")
    client.runs.cancel(thread, run["run_id"], wait=True)
    assert client.runs.get(thread, run["run_id"])["status"] == "interrupted"
    done = client.threads.get_state(thread)["values"]["done"]
    end: Any = client.runs.wait(thread, "slow", input={"steps": len(done) + 1, "pause": 0})
    assert end["done"] == [*range(len(done) + 1)]


def test_a_killed_process_of_graphs_is_replaced_and_its_step_runs_again(server: Server) -> None:
    client = server.client
    thread = thread_of(client)
    server.log.write_text("")
    run = client.runs.create(thread, "slow", input={"steps": 5, "pause": 0.4})
    server.wait_for("begin 2")
    for child in server.children():
        os.kill(child, signal.SIGKILL)
    end: Any = client.runs.join(thread, run["run_id"])
    assert end["done"] == [0, 1, 2, 3, 4]
    lines = server.lines()
    assert lines.count("begin 2") == 2 and all(lines.count(f"end {n}") == 1 for n in range(5)), lines


def test_a_killed_server_is_followed_by_another_which_goes_on(server: Server) -> None:
    thread = thread_of(server.client)
    server.log.write_text("")
    run = server.client.runs.create(thread, "slow", input={"steps": 5, "pause": 0.4})
    server.wait_for("begin 2")
    server.kill()
    server.start()
    end: Any = server.client.runs.join(thread, run["run_id"])
    assert end["done"] == [0, 1, 2, 3, 4]
    assert all(server.lines().count(f"end {n}") <= 2 for n in range(5)), server.lines()
    history = server.client.threads.get_history(thread, limit=20)
    assert [one["values"]["done"] for one in history[:6]] == [[*range(n)] for n in range(5, -1, -1)]


def test_answers_survive_a_kill_between_two_questions(server: Server) -> None:
    thread = thread_of(server.client)
    server.client.runs.wait(thread, "order", input={"item": "tea"})
    server.client.runs.wait(thread, "order", command={"resume": "Ada"})
    server.kill()
    server.start()
    server.client.runs.wait(thread, "order", command={"resume": 2})
    end: Any = server.client.runs.wait(thread, "order", command={"resume": False})
    assert end["name"] == "Ada" and end["amount"] == 2 and end["done"] == ["ask", "refused"]


def test_changed_files_are_loaded_again_and_broken_ones_change_nothing(server: Server) -> None:
    client, file = server.client, server.home / "graphs.py"
    text = file.read_text()

    def reply() -> str:
        end: Any = client.runs.wait(None, "react", input={"messages": [{"role": "user", "content": "Hi"}]})
        return str(end["messages"][-1]["content"])

    file.write_text("this is no Python")
    time.sleep(4)
    assert reply() == "It is sunny in Oslo."
    file.write_text(text.replace("It is ", "Today it is "))
    deadline = time.monotonic() + 30
    while reply() != "Today it is sunny in Oslo." and time.monotonic() < deadline:
        time.sleep(0.5)
    assert reply() == "Today it is sunny in Oslo."


def test_many_requests_do_not_load_broken_graphs_one_after_another(server: Server) -> None:
    client, file = server.client, server.home / "graphs.py"
    text = file.read_text()
    server.log.write_text("")
    file.write_text("import os\nopen(os.environ['HOSTED_LOG'], 'a').write('loads\\n')\nraise ValueError('broken')\n")
    server.wait_for("loads")
    for child in server.children():
        os.kill(child, signal.SIGKILL)
    server.log.write_text("")

    def ask(_: int) -> int:
        return httpx.get(f"{server.url}/assistants/{assistant}/graph", timeout=60).status_code

    assistant = client.assistants.search(graph_id="slow")[0]["assistant_id"]
    with ThreadPoolExecutor(8) as threads:
        assert all(status >= 400 for status in threads.map(ask, range(8)))
    assert len(server.lines()) <= 2, server.lines()
    file.write_text(text)
    deadline = time.monotonic() + 30
    while ask(0) != 200 and time.monotonic() < deadline:
        time.sleep(0.5)
    assert ask(0) == 200


@pytest.mark.parametrize("command", [["serve", "--addr", "127.0.0.1:0", "--graphs", "langgraph.json"], ["demo", "--python"]])
def test_an_environment_without_the_package_is_named(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "langgraph.json").write_text(json.dumps({"graphs": {"a": "./a.py:a"}}))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "empty")], check=True)
    environment = {**os.environ, "VIRTUAL_ENV": str(tmp_path / "empty"), "HOME": str(tmp_path)}
    environment.pop("PYTHONPATH", None)
    whole = [PROGRAM, *command, "--database", "sqlite:x.db"]
    ended = subprocess.run(whole, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert ended.returncode != 0 and "activate a Python environment that has perihelion-agents" in ended.stderr


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("node_version", "20"),
        ("http", {"app": "./app.py:app"}),
        ("http.disable_ui", {"disable_ui": True}),
        ("auth.cache", {"path": "./auth.py:auth", "cache": {"ttl_seconds": 60}}),
        ("store.ttl.default", {"ttl": {"default": 60}}),
        ("graph", {"a": "./a.py:a"}),
        ("checkpointer", {"ttl": {"default_ttl": 60}}),
    ],
)
def test_what_is_not_hosted_is_refused_by_its_name(tmp_path: Path, field: str, value: Any) -> None:
    (tmp_path / "langgraph.json").write_text(json.dumps({"graphs": {"a": "./a.py:a"}, field.partition(".")[0]: value}))
    command = [PROGRAM, "serve", "--addr", "127.0.0.1:0", "--database", "sqlite:x.db", "--graphs", "langgraph.json"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2 and field in ended.stderr and "not supported" in ended.stderr
