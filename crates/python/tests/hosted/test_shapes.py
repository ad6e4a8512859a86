"""Graphs of many shapes behave as on LangGraph's own server: the expected outcomes were recorded from `langgraph dev`."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import httpx
import pytest
from hosted_server import Server, count_of, part_of, thread_of
from langgraph_sdk.client import SyncLangGraphClient

SHAPES = (
    "edited factory fan parent nested parallel context functional clear schemas paused around steps failing memory noted".split()
)


@pytest.fixture(scope="module")
def server(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    graphs = {name: f"./graphs.py:{name}" for name in SHAPES}
    server = Server(tmp_path_factory.mktemp("home"), database, graphs, "hosted_shapes")
    server.environment["PERIHELION_SERVE_CALLBACK_HOSTS"] = "127.0.0.1"
    server.start()
    yield server
    server.kill()


def ask(client: SyncLangGraphClient, thread: str | None, graph: str, **options: Any) -> Any:
    return client.runs.wait(thread, graph, **options)


def tasks_of(state: Any) -> Any:
    return [(task["name"], [one["value"] for one in task["interrupts"]]) for task in state["tasks"]]


def assistant_of(client: SyncLangGraphClient, graph: str) -> str:
    return str(client.assistants.search(graph_id=graph)[0]["assistant_id"])


def test_a_factory_makes_the_graph_of_an_assistants_config(client: SyncLangGraphClient) -> None:
    config: Any = {"configurable": {"count": 3}}
    assert ask(client, None, "factory", input={}, config=config)["log"] == ["n0", "n1", "n2"]
    assistant = client.assistants.create("factory", config={"configurable": {"count": 1}})["assistant_id"]
    assert ask(client, None, assistant, input={})["log"] == ["n0"]
    drawn = client.assistants.get_graph(assistant)
    assert [node["id"] for node in drawn["nodes"]] == ["__start__", "n0", "__end__"]
    assert drawn["nodes"][1] == {"id": "n0", "type": "runnable", "data": {"name": "n0"}}


def test_work_is_fanned_out_and_joined(client: SyncLangGraphClient) -> None:
    thread = thread_of(client)
    parts = list(client.runs.stream(thread, "fan", input={"to": "xyz"}, stream_mode=["updates", "values"]))
    assert [next(iter(data)) for data in part_of(parts, "updates")] == ["work"] * 3 + ["join"]
    assert part_of(parts, "values")[-1]["log"] == ["x", "y", "z", 3]
    history = client.threads.get_history(thread)
    assert [one["next"] for one in history] == [[], ["join"], ["work"] * 3, ["__start__"]]
    assert [(one["metadata"] or {})["step"] for one in history] == [2, 1, 0, -1]


@pytest.mark.parametrize("to", ["left", "right"])
def test_a_subgraph_sends_its_parent_on(client: SyncLangGraphClient, to: str) -> None:
    assert ask(client, None, "parent", input={"to": to})["log"] == ["below", to]


def test_nested_subgraphs_ask_and_their_states_are_shown(client: SyncLangGraphClient) -> None:
    thread = thread_of(client)
    parts = list(client.runs.stream(thread, "nested", input={}, stream_mode="updates", stream_subgraphs=True))
    assert any(part.event.startswith("updates|middle:") and part.data == {"begin": {"log": ["middle"]}} for part in parts)
    asked = [part for part in parts if "__interrupt__" in part.data]
    assert [part.event.count("|") for part in asked] == [2, 1, 0]
    state = client.threads.get_state(thread)
    assert {part.data["__interrupt__"][0]["id"] for part in asked} == {state["interrupts"][0]["id"]}
    assert tasks_of(state) == [("middle", ["one?"])] and state["tasks"][0]["state"] is None
    state = client.threads.get_state(thread, subgraphs=True)
    below: Any = state["tasks"][0]["state"]
    assert below["values"]["log"] == ["outer", "middle"] and below["next"] == ["deep"]
    assert tasks_of(below) == [("deep", ["one?"])] and tasks_of(below["tasks"][0]["state"]) == [("ask", ["one?"])]
    id = state["tasks"][0]["interrupts"][0]["id"]
    assert below["tasks"][0]["interrupts"][0]["id"] == id
    ask(client, thread, "nested", command={"resume": {id: 1}})
    assert tasks_of(client.threads.get_state(thread)) == [("middle", ["two?"])]
    assert ask(client, thread, "nested", command={"resume": 2})["log"][-2:] == ["1-2", "end"]
    names = list(client.assistants.get_subgraphs(assistant_of(client, "nested"), recurse=True))
    assert names == ["middle", "middle|deep"]


def test_the_state_of_a_subgraph_is_edited(client: SyncLangGraphClient) -> None:
    thread = thread_of(client)
    ask(client, thread, "around", input={})
    below: Any = client.threads.get_state(thread, subgraphs=True)["tasks"][0]["state"]
    namespace: Any = {"thread_id": thread, "checkpoint_ns": below["checkpoint"]["checkpoint_ns"]}
    client.threads.update_state(thread, {"log": ["edited"]}, checkpoint=namespace)
    assert client.threads.get_state(thread, checkpoint=namespace)["values"]["log"] == ["a", "edited"]
    assert client.threads.get_state(thread)["values"]["log"] == []
    assert ask(client, thread, "around", input=None)["log"] == ["a", "edited", "b", "end"]


def test_parallel_tasks_show_their_own_questions(client: SyncLangGraphClient) -> None:
    thread = thread_of(client)
    ask(client, thread, "parallel", input={})
    state = client.threads.get_state(thread)
    assert tasks_of(state) == [("a", ["a"]), ("b", ["b"])]
    ask(client, thread, "parallel", command={"resume": {state["tasks"][0]["interrupts"][0]["id"]: 1}})
    state = client.threads.get_state(thread)
    assert state["next"] == ["b"] and state["values"]["log"] == ["a=1"]
    assert tasks_of(state) == [("a", []), ("b", ["b"])]
    ask(client, thread, "parallel", command={"resume": {state["tasks"][1]["interrupts"][0]["id"]: 2}})
    assert client.threads.get_state(thread)["values"]["log"] == ["a=1", "b=2", "end"]


def test_a_thread_is_continued_by_another_graph(client: SyncLangGraphClient) -> None:
    thread = thread_of(client)
    ask(client, thread, "parallel", input={})
    assert ask(client, thread, "steps", input={})["log"] == [0, 1, 2, 3]
    assert ask(client, thread, "fan", input={"to": "ab"})["log"] == [0, 1, 2, 3, "a", "b", 6]
    kept = client.threads.get(thread)
    assert kept["status"] == "idle" and (kept["metadata"] or {})["graph_id"] == "fan"
    history = client.threads.get_history(thread, limit=20)
    steps = [(one["metadata"] or {})["step"] for one in history]
    assert steps == list(range(10, -2, -1)), steps


def test_a_context_has_defaults_and_comes_from_runs_assistants_and_configs(client: SyncLangGraphClient) -> None:
    def greeted(graph: str, **options: Any) -> str:
        return str(ask(client, None, graph, input={}, **options)["log"][0])

    assert greeted("context") == "nobody:1"
    assert greeted("context", context={"name": "Ann", "level": 4}) == "Ann:4"
    assert greeted("context", config={"configurable": {"name": "Bob"}}) == "Bob:1"
    assert greeted(client.assistants.create("context", context={"name": "Cem"})["assistant_id"]) == "Cem:1"


def test_an_entrypoint_asks_continues_and_remembers(client: SyncLangGraphClient) -> None:
    thread = thread_of(client)
    parts = list(client.runs.stream(thread, "functional", input={"numbers": [1, 2]}, stream_mode="updates"))
    assert part_of(parts, "updates")[-1]["__interrupt__"][0]["value"] == {"doubled": [2, 4]}
    state = client.threads.get_state(thread)
    assert state["next"] == ["functional"] and tasks_of(state) == [("functional", [{"doubled": [2, 4]}])]
    assert ask(client, thread, "functional", command={"resume": "yes"}) == {"approved": "yes", "before": None}
    assert client.threads.get_state(thread)["next"] == []
    ask(client, thread, "functional", input={"numbers": [3]})
    assert ask(client, thread, "functional", command={"resume": "no"}) == {"approved": "no", "before": [2, 4]}


def test_messages_are_removed(client: SyncLangGraphClient) -> None:
    thread = thread_of(client)
    for _ in range(2):
        ended = ask(client, thread, "clear", input={"messages": [{"role": "user", "content": "old"}]})
        assert [message["content"] for message in ended["messages"]] == ["new"]


def test_an_output_has_only_the_fields_of_its_schema(client: SyncLangGraphClient) -> None:
    thread = thread_of(client)
    parts = list(client.runs.stream(thread, "schemas", input={"name": "Ann"}, stream_mode=["values", "updates"]))
    assert part_of(parts, "values")[-1] == {"greeting": "Hello Ann"}
    assert part_of(parts, "updates") == [{"greet": {"greeting": "Hello Ann"}}]
    assert client.runs.wait(thread, "schemas", input={"name": "Bob"}) == {"greeting": "Hello Bob"}
    assert client.threads.get_state(thread)["values"]["secret"] == "hidden"


def test_a_graph_pauses_where_it_was_compiled_to(client: SyncLangGraphClient) -> None:
    thread = thread_of(client)
    assert ask(client, thread, "paused", input={})["log"] == ["a"]
    assert client.threads.get(thread)["status"] == "interrupted"
    assert ask(client, thread, "paused", input=None)["log"] == ["a", "b"]


def test_a_command_can_begin_a_thread(client: SyncLangGraphClient) -> None:
    thread = thread_of(client)
    ended = ask(client, thread, "steps", command={"update": {"log": ["told"]}, "goto": "s2"})
    assert "told" in ended["log"] and 2 in ended["log"]


def test_a_command_sends_inputs_to_nodes(client: SyncLangGraphClient) -> None:
    thread = thread_of(client)
    ask(client, thread, "fan", input={"to": "x"})
    sends: Any = [{"node": "work", "input": {"to": name}} for name in ("one", "two")]
    assert ask(client, thread, "fan", command={"goto": sends})["log"] == ["x", 1, "one", "two", 4]


@pytest.mark.parametrize(
    "command",
    [
        5,
        {"goto": 5},
        {"goto": {"node": "s2"}},
        {"goto": {"node": 5, "input": {}}},
        {"goto": ["s1", {"node": "s2", "input": {}}]},
        {"goto": [["s1"]]},
        {"update": 5},
        {"update": ["log"]},
    ],
)
def test_a_command_of_another_shape_is_refused(server: Server, command: Any) -> None:
    run = {"assistant_id": "steps", "command": command}
    answer = httpx.post(f"{server.url}/threads/{thread_of(server.client)}/runs/wait", json=run)
    assert answer.status_code == 422, answer.text


def test_an_update_of_a_command_runs_no_node_of_an_ended_thread(client: SyncLangGraphClient) -> None:
    thread = thread_of(client)
    ask(client, thread, "steps", input={})
    pairs: Any = [["log", ["told"]], ["log", ["again"]]]
    for update in ({"log": ["new"]}, pairs):
        ask(client, thread, "steps", command={"update": update})
    state = client.threads.get_state(thread)
    assert state["values"] == {"log": [0, 1, 2, 3, "new", "told", "again"]} and state["next"] == []


def test_answers_come_with_an_update(client: SyncLangGraphClient) -> None:
    thread = thread_of(client)
    ask(client, thread, "parallel", input={})
    first = client.threads.get_state(thread)["tasks"][0]["interrupts"][0]["id"]
    ask(client, thread, "parallel", command={"resume": {first: 1}, "update": {"log": ["new"]}})
    state = client.threads.get_state(thread)
    assert state["next"] == ["b"] and state["values"]["log"] == ["new", "a=1"]
    assert tasks_of(state) == [("a", []), ("b", ["b"])]
    assert ask(client, thread, "parallel", command={"resume": 2})["log"] == ["new", "a=1", "b=2", "end"]
    # Without an open question, the update alone counts.
    assert ask(client, thread, "parallel", command={"resume": 3, "update": {"log": ["late"]}})["log"][-1] == "late"


def test_a_thread_does_not_begin_without_an_input(client: SyncLangGraphClient) -> None:
    thread = thread_of(client)
    why = {"error": "EmptyInputError", "message": "Received no input for __start__"}
    assert part_of(list(client.runs.stream(thread, "steps", input=None)), "error") == [why]
    found = client.threads.get(thread)
    assert (found["status"], found["error"]) == ("error", why)
    assert ask(client, thread, "steps", input={})["log"] == [0, 1, 2, 3]


def test_a_run_from_an_earlier_checkpoint_leaves_one_fork(client: SyncLangGraphClient) -> None:
    thread = thread_of(client)
    ask(client, thread, "steps", input={})
    earlier = next(one for one in client.threads.get_history(thread, limit=20) if one["next"] == ["s2"])
    id: Any = earlier["checkpoint"]["checkpoint_id"]
    assert ask(client, thread, "steps", input=None, checkpoint_id=id)["log"] == [0, 1, 2, 3]
    sources = [one["metadata"]["source"] for one in client.threads.get_history(thread, limit=4)]
    assert sources == ["loop", "loop", "fork", "loop"]


def test_of_two_edits_of_one_state_one_is_refused(client: SyncLangGraphClient) -> None:
    thread = thread_of(client)
    ask(client, thread, "edited", input={})

    def edit(word: str) -> str | None:
        try:
            client.threads.update_state(thread, {"log": [word]})
            return word
        except httpx.HTTPStatusError as error:
            assert error.response.status_code == 409, error.response.text
            return None

    with ThreadPoolExecutor(2) as threads:
        made = [word for word in threads.map(edit, ["one", "two"]) if word]
    assert len(made) == 1
    assert edit("three") == "three"
    assert client.threads.get_state(thread)["values"]["log"] == [0, 1, 2, 3, *made, "three"]


def test_a_copy_is_independent_of_its_original(server: Server) -> None:
    client = server.client
    thread = thread_of(client)
    ask(client, thread, "around", input={})
    copy = str(client.http.post(f"/threads/{thread}/copy", json={})["thread_id"])
    below: Any = client.threads.get_state(copy, subgraphs=True)["tasks"][0]["state"]
    namespace: Any = {"thread_id": copy, "checkpoint_ns": below["checkpoint"]["checkpoint_ns"]}
    client.threads.update_state(copy, {"log": ["edited"]}, checkpoint=namespace)
    original: Any = client.threads.get_state(thread, subgraphs=True)["tasks"][0]["state"]
    assert original["values"]["log"] == ["a"]
    client.threads.delete(thread)
    # The server deletes its checkpoints later.
    deadline = time.monotonic() + 90
    mine = f"thread_id = '{thread}'"
    while count_of(server.database, "checkpoints", mine) and time.monotonic() < deadline:
        time.sleep(0.5)
    assert not count_of(server.database, "checkpoints", mine)
    assert ask(client, copy, "around", input=None)["log"] == ["a", "edited", "b", "end"]


def test_an_edit_can_end_a_thread(client: SyncLangGraphClient) -> None:
    thread = thread_of(client)
    ask(client, thread, "paused", input={})
    client.threads.update_state(thread, None, as_node="__end__")
    assert client.threads.get_state(thread)["next"] == []


def test_an_exception_keeps_its_class(client: SyncLangGraphClient) -> None:
    thread = thread_of(client)
    parts = list(client.runs.stream(thread, "failing", input={}))
    why = {"error": "ValueError", "message": "not like this"}
    assert part_of(parts, "error") == [why] and client.threads.get(thread)["error"] == why
    assert client.threads.get_state(thread)["tasks"][0]["error"] == "ValueError('not like this')"


def test_nodes_and_clients_have_one_store(client: SyncLangGraphClient) -> None:
    client.store.put_item(["memories", "bob"], key="coffee", value={"text": "black"})
    assert ask(client, None, "memory", input={})["log"] == ["coffee", "tea"]
    item = client.store.get_item(["memories", "ann"], key="tea")
    assert item["value"] == {"text": "green"} and item["namespace"] == ["memories", "ann"]
    found = client.store.search_items(["memories"], filter={"text": "black"})["items"]
    assert [one["key"] for one in found] == ["coffee"]
    assert client.store.list_namespaces(prefix=["memories"])["namespaces"] == [["memories", "ann"], ["memories", "bob"]]
    client.store.delete_item(["memories", "bob"], key="coffee")
    assert ask(client, None, "memory", input={})["log"] == ["tea"]


def test_no_config_names_the_store_of_another_tenant(client: SyncLangGraphClient) -> None:
    config: Any = {"configurable": {"perihelion_tenant": "other"}}
    thread = thread_of(client)
    ask(client, thread, "noted", input={}, config=config)
    client.threads.update_state(thread, {"log": ["edited"]})
    client.threads.get_state(thread, subgraphs=True)
    assistant = client.assistants.create("noted", config=config)["assistant_id"]
    client.assistants.get_graph(assistant)
    made = {item["key"] for item in client.store.search_items(["noted"])["items"]}
    assert made == {"threads.create_run", "threads.update", "threads.read", "assistants.read"}


def test_events_of_all_runnables_are_streamed(client: SyncLangGraphClient) -> None:
    parts = list(client.runs.stream(None, "steps", input={}, stream_mode="events"))
    events = [(data["event"], data["name"]) for data in part_of(parts, "events")]
    assert events[0] == ("on_chain_start", "steps") and events[-1] == ("on_chain_end", "steps")
    assert ("on_chain_start", "s2") in events
    assert "perihelion" not in json.dumps(part_of(parts, "events"))


def test_a_cron_runs_a_graph_and_a_webhook_tells_of_it(client: SyncLangGraphClient) -> None:
    told: list[Any] = []
    came = threading.Event()

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()
            came.set()

        def log_message(self, *ignored: Any) -> None: ...

    hook = HTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=hook.serve_forever, daemon=True).start()
    thread = thread_of(client)
    address = f"http://127.0.0.1:{hook.server_port}/"
    cron = client.crons.create_for_thread(thread, "steps", schedule="* * * * *", input={}, webhook=address)
    assert [one["cron_id"] for one in client.crons.search(thread_id=thread)] == [cron["cron_id"]]
    assert came.wait(90)
    client.crons.delete(cron["cron_id"])
    assert told[0]["status"] == "success" and told[0]["thread_id"] == thread
    hook.shutdown()
