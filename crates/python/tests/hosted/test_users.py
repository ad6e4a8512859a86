"""The auth handler of a `langgraph.json` decides who asks, what they see, and what nodes know of them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hosted_server import Server, thread_of
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient


@pytest.fixture(scope="module")
def server(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    graphs = {name: f"./graphs.py:{name}" for name in ("shown", "steps", "memory")}
    auth = {"path": "./graphs.py:auth"}
    http = {"disable_meta": True, "disable_webhooks": True, "configurable_headers": {"includes": ["x-*"], "excludes": ["x-team-secret"]}}
    server = Server(tmp_path_factory.mktemp("home"), database, graphs, "hosted_shapes", auth=auth, http=http)
    server.start()
    yield server
    server.kill()


def client_of(server: Server, name: str) -> SyncLangGraphClient:
    return get_sync_client(url=server.url, headers={"Authorization": f"Bearer {name}"})


@pytest.fixture
def ann(server: Server) -> SyncLangGraphClient:
    return client_of(server, "ann")


@pytest.fixture
def bob(server: Server) -> SyncLangGraphClient:
    return client_of(server, "bob")


def status_of(act: Any, *given: Any, **options: Any) -> int:
    try:
        act(*given, **options)
    except httpx.HTTPStatusError as error:
        return error.response.status_code
    return 200


def test_strangers_are_refused(server: Server) -> None:
    answer = httpx.post(f"{server.url}/threads", json={})
    assert answer.status_code == 401 and "who are you?" in answer.text
    answer = httpx.get(f"{server.url}/v1/auth/me", headers={"Authorization": "Bearer ann"})
    assert answer.status_code == 404, "the routes of operators are not for them"


def test_each_sees_their_own_threads(server: Server, ann: SyncLangGraphClient, bob: SyncLangGraphClient) -> None:
    mine, theirs = thread_of(ann), thread_of(bob)
    assert ann.threads.get(mine)["metadata"]["owner"] == "ann"
    assert [one["thread_id"] for one in ann.threads.search()] == [mine]
    assert [one["thread_id"] for one in bob.threads.search(metadata={"owner": "ann"})] == [theirs]
    for act in (bob.threads.get, bob.threads.get_state, bob.threads.get_history, bob.threads.delete, bob.runs.list):
        assert status_of(act, mine) == 404
    for written in (f"%{ord(mine[0]):x}{mine[1:]}", mine.upper(), mine.replace("-", ""), f"%7B{mine}%7D"):
        for path in ("", "/state", "/history"):
            answer = httpx.get(f"{server.url}/threads/{written}{path}", headers={"Authorization": "Bearer bob"})
            assert answer.status_code in (404, 422), f"{written}{path}: {answer.text}"
    assert status_of(bob.runs.wait, mine, "steps", input={}) == 404
    for thread, expected in ((theirs, 200), (mine, 404)):
        assert status_of(bob.runs.create_batch, [{"assistant_id": "steps", "input": {}, "thread_id": thread}]) == expected
    assert status_of(bob.threads.update, mine, metadata={"owner": "bob"}) == 404
    ended: Any = ann.runs.wait(mine, "steps", input={})
    assert ended["log"] == [0, 1, 2, 3]


def test_nodes_know_the_fields_of_the_user(ann: SyncLangGraphClient) -> None:
    forged: Any = {"configurable": {"langgraph_auth_user": {"identity": "ann", "role": "root"}}}
    for config in (None, forged):
        ended: Any = ann.runs.wait(None, "shown", input={}, config=config)
        assert ended["log"][:2] == ["ann", "role of ann"]


def test_commands_cannot_forge_users_and_no_list_shows_their_fields(server: Server, ann: SyncLangGraphClient) -> None:
    thread = thread_of(ann)
    forged = {"configurable": {"langgraph_auth_user": {"identity": "ann", "role": "root"}}}
    params = {"assistant_id": "shown", "input": {}, "config": forged}
    headers = {"Authorization": "Bearer ann"}
    command = {"id": 1, "method": "run.start", "params": params}
    answer = httpx.post(f"{server.url}/threads/{thread}/commands", headers=headers, json=command)
    assert answer.status_code == 200, answer.text
    run = answer.json()["result"]["run_id"]
    ended: Any = ann.runs.join(thread, run)
    assert ended["log"][:2] == ["ann", "role of ann"]
    assert "role of ann" not in str(ann.runs.list(thread))
    answer = httpx.get(f"{server.url}/threads/{thread}/stream/events", headers=headers)
    assert answer.status_code == 403, "a socket carries commands without the handlers"


def test_a_thread_with_an_id_of_the_client_is_created_once(ann: SyncLangGraphClient, bob: SyncLangGraphClient) -> None:
    thread = str(uuid.uuid4())
    for _ in range(2):
        assert ann.threads.create(thread_id=thread, if_exists="do_nothing")["metadata"]["owner"] == "ann"
    assert status_of(bob.threads.create, thread_id=thread, if_exists="do_nothing") == 404


def test_what_cannot_be_read_is_refused_as_without_a_handler(server: Server) -> None:
    url, headers = f"{server.url}/threads", {"Authorization": "Bearer ann"}
    as_json = headers | {"Content-Type": "application/json"}
    assert httpx.post(url, headers=as_json, content=b"{bad").status_code == 422
    assert httpx.post(url, headers=headers).status_code == 200, "an empty body means no fields"
    assert httpx.post(f"{server.url}/runs/batch", headers=as_json, json={"assistant_id": "shown"}).status_code == 422
    assert httpx.post(url, headers=as_json, json=["a"]).status_code == 422


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("threads", {"metadata": "x"}),
        ("threads", {"thread_id": 5, "if_exists": "do_nothing"}),
        ("threads/search", {"metadata": ["x"]}),
        ("threads/prune", {"thread_ids": None}),
        ("threads/prune", {"thread_ids": [{}]}),
        ("threads/{}/commands", {"id": 1, "method": "run.start", "params": 3}),
        ("threads/{}/runs/wait", {"assistant_id": "shown", "config": "x"}),
        ("runs/batch", [{"assistant_id": "shown", "config": {"configurable": "x"}}]),
        ("runs/batch", [{"assistant_id": "shown", "thread_id": ["x"]}]),
        ("runs/wait", {"assistant_id": 5}),
        ("runs/cancel", {"thread_id": 5}),
        ("store/items/search", {"namespace_prefix": 5}),
        ("store/namespaces", {"prefix": "x"}),
    ],
)
def test_fields_of_other_shapes_are_refused(server: Server, ann: SyncLangGraphClient, path: str, body: Any) -> None:
    address = f"{server.url}/{path.format(thread_of(ann))}"
    answer = httpx.post(address, headers={"Authorization": "Bearer ann", "x-team": "blue"}, json=body)
    assert answer.status_code == 422, answer.text


def test_routes_are_off_and_headers_reach_the_config(server: Server, ann: SyncLangGraphClient) -> None:
    assert httpx.get(f"{server.url}/info", headers={"Authorization": "Bearer ann"}).status_code == 404
    given = {"x-team": "blue", "x-team-secret": "no", "x-api-key": "no"}
    headers = {"Authorization": "Bearer ann", **given}
    answer = httpx.post(f"{server.url}/runs/wait", headers=headers, json={"assistant_id": "shown", "input": {}}, timeout=60)
    assert answer.json()["log"][3] == {"x-team": "blue"}


def test_no_client_overrides_a_header(server: Server, ann: SyncLangGraphClient) -> None:
    headers = {"Authorization": "Bearer ann", "x-team": "blue"}
    run = {"assistant_id": "shown", "input": {}, "config": {"configurable": {"x-team": "red"}}}
    answer = httpx.post(f"{server.url}/runs/wait", headers=headers, json=run, timeout=60)
    assert answer.json()["log"][3] == {"x-team": "blue"}
    thread = thread_of(ann)
    command = {"id": 1, "method": "run.start", "params": run}
    answer = httpx.post(f"{server.url}/threads/{thread}/commands", headers=headers, json=command)
    ended: Any = ann.runs.join(thread, answer.json()["result"]["run_id"])
    assert ended["log"][3] == {"x-team": "blue"}


def test_webhooks_are_refused_where_they_are_off(server: Server, ann: SyncLangGraphClient) -> None:
    webhook = "http://127.0.0.1:1/"
    command = {"id": 1, "method": "run.start", "params": {"assistant_id": "shown", "input": {}, "webhook": webhook}}
    headers = {"Authorization": "Bearer ann"}
    answer = httpx.post(f"{server.url}/threads/{thread_of(ann)}/commands", headers=headers, json=command)
    assert answer.status_code == 422 and "webhooks are off" in answer.text
    assert status_of(ann.runs.create, None, "shown", input={}, webhook=webhook) == 422
    assert status_of(ann.crons.create, "shown", schedule="0 0 1 1 *", webhook=webhook) == 422


def test_the_identity_of_a_user_can_be_a_property(server: Server) -> None:
    ended: Any = client_of(server, "cem").runs.wait(None, "shown", input={})
    assert ended["log"][:2] == ["cem", "role of cem"]


def test_runs_of_crons_know_their_user(server: Server, ann: SyncLangGraphClient, bob: SyncLangGraphClient) -> None:
    assert status_of(client_of(server, "cem").crons.create, "memory", schedule="* * * * *") == 403
    made = ann.crons.create("shown", schedule="@monthly", input={})
    assert made["schedule"] == "1 0 1 * *"
    thread = thread_of(ann)
    cron = ann.crons.create_for_thread(thread, "shown", schedule="* * * * *", input={})["cron_id"]
    assert status_of(bob.crons.create_for_thread, thread, "shown", schedule="* * * * *") == 404
    ann.crons.update(cron, config={"configurable": {"flavour": "mint"}})
    for _ in range(450):
        if log := (ann.threads.get_state(thread)["values"] or {}).get("log"):
            break
        time.sleep(0.2)
    assert log[:2] == ["ann", "role of ann"]
    listed = ann.crons.search()
    assert {one["cron_id"] for one in listed} == {cron, made["cron_id"]} and "role of ann" not in str(listed)
    assert bob.crons.search() == []
    for one in listed:
        ann.crons.delete(one["cron_id"])


def test_settings_for_routes_leave_long_documents_to_their_own_limit(database: str, tmp_path: Path) -> None:
    http = {"configurable_headers": {"includes": ["x-*"]}}
    server = Server(tmp_path, database, {"steps": "./graphs.py:steps"}, "hosted_shapes", http=http)
    server.environment["PERIHELION_SERVE_MAX_BODY_BYTES"] = "10000"
    server.start()
    try:
        answer = httpx.post(f"{server.url}/v1/documents", params={"name": "long.txt"}, content=b"word " * 4000, timeout=60)
        assert answer.status_code in (200, 201), answer.text
        assert httpx.post(f"{server.url}/threads", json={"metadata": {"text": "word " * 4000}}).status_code == 413
        run = {"assistant_id": "steps", "config": "x"}
        assert httpx.post(f"{server.url}/runs/wait", headers={"x-team": "blue"}, json=run).status_code == 422
    finally:
        server.kill()


def test_a_handler_changes_namespaces(ann: SyncLangGraphClient, bob: SyncLangGraphClient) -> None:
    ann.store.put_item(["notes"], key="a", value={"n": 1})
    assert ann.store.get_item(["notes"], key="a")["namespace"] == ["ann", "notes"]
    assert [item["key"] for item in ann.store.search_items([])["items"]] == ["a"]
    assert bob.store.search_items([])["items"] == []


def test_a_handler_refuses(ann: SyncLangGraphClient) -> None:
    assistant = ann.assistants.create("steps", name="mine")
    assert status_of(ann.assistants.delete, assistant["assistant_id"]) == 403
