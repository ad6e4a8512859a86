"""Drives a server with langgraph-sdk from PyPI, unchanged: python.py sqlite|URL [WORDS…]."""

import asyncio
import json
import sys
import uuid

import httpx

import later  # noqa: F401: its tests register themselves
import openai_client
import thread_protocol  # noqa: F401
from cases import collect, human, run, test


@test
async def every_stream_mode_has_its_events(client, _):
    modes = ["values", "updates", "messages", "custom", "tasks", "checkpoints", "debug", "events", "messages-tuple"]
    for mode in modes:
        thread = await client.threads.create()
        parts = await collect(client.runs.stream(
            thread["thread_id"], "swarm", input=human("hello"), stream_mode=mode))
        assert parts[0].event == "metadata" and parts[0].data["run_id"], parts[0]
        names = {part.event for part in parts[1:]}
        wanted = {"messages-tuple": "messages", "messages": "messages/partial"}.get(mode, mode)
        assert wanted in names, (mode, names)
    parts = await collect(client.runs.stream(None, "swarm", input=human("hello"), stream_mode="values"))
    last = parts[-1].data
    assert [one["type"] for one in last["messages"]] == ["human", "ai"], last["messages"]
    assert last["messages"][-1]["content"] == "Hello from the star."


@test
async def pieces_of_an_answer_add_up_to_the_message_of_the_state(client, _):
    thread = await client.threads.create()
    parts = await collect(client.runs.stream(
        thread["thread_id"], "swarm", input=human("hello"), stream_mode=["messages-tuple", "values"]))
    pieces = [part.data[0] for part in parts if part.event == "messages"]
    answer = parts[-1].data["messages"][-1]
    assert "".join(one["content"] for one in pieces) == answer["content"], pieces
    assert {one["id"] for one in pieces} == {answer["id"]}, (pieces, answer)


@test
async def a_thread_keeps_its_turns_metadata_and_history(client, _):
    thread = await client.threads.create(metadata={"user": "u1"})
    for text in ("hello", "hello again"):
        values = await client.runs.wait(thread["thread_id"], "swarm", input=human(text))
    assert len(values["messages"]) == 4
    found = await client.threads.search(metadata={"user": "u1"})
    assert [one["thread_id"] for one in found] == [thread["thread_id"]]
    assert found[0]["status"] == "idle" and found[0]["metadata"]["graph_id"] == "swarm"
    history = await client.threads.get_history(thread["thread_id"], limit=100)
    assert history[0]["next"] == [] and history[-1]["metadata"]["source"] == "input"
    for newer, older in zip(history, history[1:]):
        assert newer["parent_checkpoint"]["checkpoint_id"] == older["checkpoint"]["checkpoint_id"]
    page = await client.threads.get_history(thread["thread_id"], limit=2, before=history[1]["checkpoint"])
    assert page == history[2:4]
    at = await client.threads.get_state(thread["thread_id"], checkpoint_id=history[3]["checkpoint"]["checkpoint_id"])
    assert at["values"] == history[3]["values"]
    runs = await client.runs.list(thread["thread_id"])
    assert [one["status"] for one in runs] == ["success", "success"]


@test
async def an_approval_is_asked_in_the_form_that_pages_show_and_resumed_by_decisions(client, world):
    thread = await client.threads.create()
    parts = await collect(client.runs.stream(
        thread["thread_id"], "swarm", input=human("approve this"), stream_mode=["updates", "values"]))
    asked = [part.data["__interrupt__"] for part in parts if part.event == "updates" and "__interrupt__" in part.data]
    value = asked[0][0]["value"]
    assert value["action_requests"][0]["name"] == "notes.append_note", value
    assert value["action_requests"][0]["args"] == {"text": "remember"}
    assert value["review_configs"][0]["allowed_decisions"] == ["approve", "edit", "reject"]
    assert parts[-1].event == "values" and parts[-1].data["__interrupt__"] == asked[0]
    state = await client.threads.get(thread["thread_id"])
    assert state["status"] == "interrupted" and list(state["interrupts"].values())[0][0]["id"] == asked[0][0]["id"]
    assert (await client.runs.list(thread["thread_id"]))[0]["status"] == "success"
    values = await client.runs.wait(
        thread["thread_id"], "swarm", input={}, command={"resume": {"decisions": [{"type": "approve"}]}})
    assert values["answer"] == "Hello from the star." and "__interrupt__" not in values
    assert "remember" in (world.home / "notes.jsonl").read_text()


@test
async def parallel_questions_are_answered_one_by_one(client, _):
    thread = await client.threads.create()
    values = await client.runs.wait(thread["thread_id"], "swarm", input=human("twice"))
    first, second = [one["id"] for one in values["__interrupt__"]]
    values = await client.runs.wait(
        thread["thread_id"], "swarm", command={"resume": {first: {"decisions": [{"type": "approve"}]}}})
    assert [one["id"] for one in values["__interrupt__"]] == [second], values["__interrupt__"]
    values = await client.runs.wait(
        thread["thread_id"], "swarm", command={"resume": {second: {"decisions": [{"type": "reject"}]}}})
    assert "__interrupt__" not in values and values["answer"]


@test
async def a_message_answers_a_clarification(client, _):
    thread = await client.threads.create()
    values = await client.runs.wait(thread["thread_id"], "swarm", input=human("clarify"))
    assert values["__interrupt__"][0]["value"]["question"] == "Which year?"
    values = await client.runs.wait(thread["thread_id"], "swarm", input=human("1945"))
    assert values["answer"] == "Hello from the star."
    assert len([one for one in values["messages"] if one["type"] == "human"]) == 2


@test
async def a_state_is_edited_forked_and_run_on(client, _):
    thread = await client.threads.create()
    await client.runs.wait(thread["thread_id"], "swarm", input=human("hello"))
    history = await client.threads.get_history(thread["thread_id"], limit=100)
    planned = next(one for one in history if one["next"] == ["qa"])
    edited = await client.threads.update_state(
        thread["thread_id"], {"plan": ["mine"]}, checkpoint=planned["checkpoint"])
    state = await client.threads.get_state(thread["thread_id"])
    assert state["checkpoint"]["checkpoint_id"] == edited["checkpoint"]["checkpoint_id"]
    assert state["values"]["plan"] == ["mine"] and len(state["values"]["messages"]) == 1, state["values"]
    again = await client.runs.wait(thread["thread_id"], "swarm", input=None, checkpoint_id=planned["checkpoint_id"])
    assert len(again["messages"]) == 2 and again["plan"] == planned["values"]["plan"]


@test
async def a_background_run_is_joined_and_cancelled(client, _):
    thread = await client.threads.create()
    run = await client.runs.create(thread["thread_id"], "swarm", input=human("slow"), stream_mode=["messages-tuple"])
    heard = []
    async for part in client.runs.join_stream(thread["thread_id"], run["run_id"], stream_mode="messages-tuple"):
        if part.event == "messages":
            heard.append(part)
            break
    assert heard, "nothing was heard"
    await client.runs.cancel(thread["thread_id"], run["run_id"], wait=True)
    assert (await client.runs.get(thread["thread_id"], run["run_id"]))["status"] == "interrupted"
    assert (await client.threads.get(thread["thread_id"]))["status"] == "interrupted"
    try:
        await client.runs.cancel(thread["thread_id"], run["run_id"])
        raise AssertionError("a run that has ended was cancelled")
    except httpx.HTTPStatusError as error:
        assert error.response.status_code == 404
    # A new message continues all the same.
    values = await client.runs.wait(thread["thread_id"], "swarm", input=human("hello"))
    assert values["messages"][-2]["content"] == "hello" and values["answer"], values["messages"]


@test
async def multitask_strategies_hold(client, _):
    thread = (await client.threads.create())["thread_id"]
    first = await client.runs.create(thread, "swarm", input=human("slow"))
    try:
        await client.runs.create(thread, "swarm", input=human("hello"), multitask_strategy="reject")
        raise AssertionError("it was not rejected")
    except httpx.HTTPStatusError as error:
        assert error.response.status_code == 409
    queued = await client.runs.create(thread, "swarm", input=human("hello"), multitask_strategy="enqueue")
    assert queued["status"] == "pending"
    interrupting = await client.runs.create(thread, "swarm", input=human("hello"), multitask_strategy="interrupt")
    await client.runs.join(thread, interrupting["run_id"])
    statuses = {one["run_id"]: one["status"] for one in await client.runs.list(thread)}
    assert statuses[first["run_id"]] == "interrupted", statuses
    assert statuses[interrupting["run_id"]] == "success", statuses
    slow = await client.runs.create(thread, "swarm", input=human("slow"))
    back = await client.runs.create(thread, "swarm", input=human("hello"), multitask_strategy="rollback")
    await client.runs.join(thread, back["run_id"])
    assert slow["run_id"] not in {one["run_id"] for one in await client.runs.list(thread)}
    values = (await client.threads.get_state(thread))["values"]
    assert "slow" not in [one["content"] for one in values["messages"][-2:]], values["messages"]


@test
async def a_client_that_goes_away_stops_its_run_where_it_said_so(client, _):
    for mode, wanted in (("cancel", "interrupted"), ("continue", "running")):
        thread = (await client.threads.create())["thread_id"]
        async for part in client.runs.stream(
                thread, "swarm", input=human("slow"), stream_mode="messages-tuple", on_disconnect=mode):
            if part.event == "messages":
                break
        for _ in range(100):
            status = (await client.runs.list(thread))[0]["status"]
            if status == wanted:
                break
            await asyncio.sleep(0.05)
        assert status == wanted, (mode, status)


@test
async def refusals_have_the_codes_that_clients_know(client, world):
    async with httpx.AsyncClient(base_url=world.url) as http:
        thread = (await client.threads.create())["thread_id"]
        absent = "11111111-1111-4111-8111-111111111111"
        cases = [
            ("POST", f"/threads/{thread}/runs/stream", {}, 422),
            ("POST", f"/threads/{thread}/runs/stream", {"assistant_id": "nope", "input": {}}, 422),
            ("POST", f"/threads/{thread}/runs", {"assistant_id": "swarm", "stream_mode": "bogus"}, 422),
            ("POST", f"/threads/{thread}/runs", {"assistant_id": "swarm", "multitask_strategy": "x"}, 422),
            ("POST", f"/threads/{absent}/runs/wait", {"assistant_id": "swarm", "input": human("x")}, 404),
            ("GET", f"/threads/{absent}", None, 404),
            ("GET", "/threads/not-a-uuid", None, 422),
            ("GET", "/nope", None, 404),
            ("POST", "/threads", {"thread_id": thread}, 409),
            ("GET", f"/threads/{thread}/runs/{absent}", None, 404),
        ]
        for method, path, body, code in cases:
            answer = await http.request(method, path, json=body)
            assert answer.status_code == code and answer.json()["detail"], (method, path, answer.status_code, answer.text)
        bad = await http.post(f"/threads/{thread}/runs", content="{bad", headers={"content-type": "application/json"})
        assert bad.status_code == 422 and bad.json() == {"detail": "Invalid JSON in request body"}
        foreign = await http.get("/info", headers={"origin": "https://evil.example.org"})
        assert foreign.status_code == 403
        rebound = await http.get("/threads", headers={"host": "evil.example.org"})
        assert rebound.status_code == 403


@test
async def a_stream_follows_on_without_gap_or_duplicate_when_its_process_is_killed(client, world):
    thread = (await client.threads.create())["thread_id"]
    run = await client.runs.create(thread, "swarm", input=human("slow"), stream_mode=["messages-tuple", "values", "updates"])
    heard, last = [], "-1"
    async with httpx.AsyncClient(timeout=30) as http:
        async def follow(url, most):
            nonlocal last
            path = f"{url}/threads/{thread}/runs/{run['run_id']}/stream"
            async with http.stream("GET", path, headers={"last-event-id": last}) as answer:
                event = {}
                async for line in answer.aiter_lines():
                    if line.startswith("event: "):
                        event["name"] = line[7:]
                    elif line.startswith("data: "):
                        event["data"] = json.loads(line[6:])
                    elif line.startswith("id: "):
                        event["id"] = last = line[4:]
                    elif not line and event:
                        heard.append(event)
                        event = {}
                        if len([one for one in heard if one["name"] == "messages"]) >= most:
                            return
        await follow(world.url, 2)
        world.kill(world.process)
        world.process, world.url = world.serve()
        await follow(world.url, 10_000)
    ids = [one["id"] for one in heard]
    assert len(ids) == len(set(ids)), ids
    answer = [one for one in heard if one["name"] == "values"][-1]["data"]["messages"][-1]
    text = "".join(one["data"][0]["content"] for one in heard if one["name"] == "messages")
    assert text == answer["content"], (text, answer["content"])
    whole = []
    async with httpx.AsyncClient(timeout=30) as http:
        path = f"{world.url}/threads/{thread}/runs/{run['run_id']}/stream"
        answer = await http.get(path, headers={"last-event-id": "-1"})
        whole = [line[4:] for line in answer.text.splitlines() if line.startswith("id: ")]
    assert whole == ids, (whole, ids)


@test
async def the_command_line_continues_with_a_thread_of_the_service_and_back(client, world):
    thread = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread, "swarm", input=human("clarify"))
    ran = world.run("resume", thread, "--message", "1945", "-q")
    assert ran.returncode == 0 and ran.stdout == "Hello from the star.\n", ran
    values = await client.runs.wait(thread, "swarm", input=human("hello"))
    assert len(values["messages"]) == 6, [one["content"] for one in values["messages"]]
    ran = world.run("run", "hello", "--thread", "mine", "-q")
    assert ran.returncode == 0, ran
    assert "mine" in {one["metadata"].get("title") for one in await client.threads.search(limit=100)}


@test
async def openai_s_client_asks_and_is_asked(client, world):
    await asyncio.to_thread(openai_client.drive, world.url, world.run, None)


@test
async def what_waits_for_a_person_is_listed_over_all_threads_and_decided(client, world):
    thread = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread, "swarm", input=human("approve this"))
    async with httpx.AsyncClient(base_url=world.url) as http:
        waiting = (await http.get("/v1/approvals")).json()
        one = next(one for one in waiting if one["thread_id"] == thread)
        assert one["kind"] == "approval" and one["agent"] == "mcp_agent_notes", one
        decided = await http.post(f"/v1/approvals/{one['id']}/approve", json={})
        assert decided.status_code == 200, decided.text
        await client.runs.join(thread, decided.json()["run_id"])
        late = await http.post(f"/v1/approvals/{one['id']}/approve", json={})
        assert late.status_code == 409, late.text
        assert (await http.get(f"/v1/threads/{thread}/trace")).json()["spans"]
        dump = (await http.get(f"/v1/threads/{thread}/export")).content
        assert dump.count(b"\n") > 3
        document = (await http.get("/openapi.json")).json()
        assert document["openapi"] == "3.1.0" and "/threads/{thread}/runs/stream" in document["paths"]
    assert (await client.threads.get_state(thread))["values"]["answer"] == "Hello from the star."


@test
async def the_star_is_a_tool_of_an_mcp_client(client, world):
    async with httpx.AsyncClient(base_url=world.url) as http:
        async def call(number, method, params):
            answer = await http.post("/mcp", json={"jsonrpc": "2.0", "id": number, "method": method, "params": params}, headers={
                "accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"})
            text = answer.text
            if "data:" in text:
                text = [line[5:] for line in text.splitlines() if line.startswith("data:") and "jsonrpc" in line][-1]
            return json.loads(text)["result"]
        about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        assert (await call(1, "initialize", about))["serverInfo"]["name"] == "perihelion-swarm"
        assert [tool["name"] for tool in (await call(2, "tools/list", {}))["tools"]] == ["swarm"]
        asked = await call(3, "tools/call", {"name": "swarm", "arguments": {"question": "clarify"}})
        asked = asked["structuredContent"]
        assert asked["status"] == "interrupted" and asked["answer"] == "Which year?", asked
        done = await call(4, "tools/call", {
            "name": "swarm", "arguments": {"question": "1945", "thread_id": asked["thread_id"]}})
        assert done["structuredContent"]["answer"] == "Hello from the star.", done


@test
async def another_agent_sends_tasks_by_both_bindings(client, world):
    async with httpx.AsyncClient(base_url=world.url, timeout=30, headers={"a2a-version": "1.0"}) as http:
        card = (await http.get("/.well-known/agent-card.json")).json()
        assert {one["protocolBinding"] for one in card["supportedInterfaces"]} == {"JSONRPC", "HTTP+JSON"}

        def message(text, **more):
            return {"message": {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", "parts": [{"text": text}], **more}}

        async def rpc(method, params):
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            return (await http.post("/a2a", json=body)).json()
        asked = (await rpc("SendMessage", message("clarify")))["result"]["task"]
        assert asked["status"]["state"] == "TASK_STATE_INPUT_REQUIRED", asked
        assert asked["status"]["message"]["parts"][0]["text"] == "Which year?"
        done = (await http.post("/a2a/message:send", json=message("1945", taskId=asked["id"]))).json()["task"]
        assert done["id"] == asked["id"] and done["status"]["state"] == "TASK_STATE_COMPLETED", done
        assert done["artifacts"][0]["parts"][0]["text"] == "Hello from the star."
        listed = (await http.get("/a2a/tasks", params={"contextId": asked["contextId"]})).json()
        assert [one["id"] for one in listed["tasks"]] == [asked["id"]], listed
        assert (await rpc("GetTask", {"id": str(uuid.uuid4())}))["error"]["code"] == -32001
        assert (await rpc("CancelTask", {"id": done["id"]}))["error"]["code"] == -32002
        assert (await rpc("Nothing", {}))["error"]["code"] == -32601
        stream = await http.post("/a2a/message:stream", json=message("hello"))
        events = [json.loads(line[6:]) for line in stream.text.splitlines() if line.startswith("data: ")]
        assert "task" in events[0] and events[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED", events
        pieces = [one["artifactUpdate"]["artifact"]["parts"][0]["text"] for one in events if "artifactUpdate" in one]
        assert "".join(pieces) == "Hello from the star.", pieces
        # The thread of a task is any other face's as well.
        state = await client.threads.get_state(asked["contextId"])
        assert state["values"]["answer"] == "Hello from the star."


asyncio.run(run(sys.argv[1:]))
