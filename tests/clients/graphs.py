"""Drives the examples, which serve graphs of their own, with langgraph-sdk from PyPI, unchanged: graphs.py sqlite|URL EXAMPLE [WORDS…]."""

import asyncio
import sys

import httpx

from cases import collect, run

MODES = ["values", "updates", "messages-tuple", "custom", "tasks", "checkpoints", "debug", "events"]
APPROVE = {"decisions": [{"type": "approve"}]}
TESTS = {"order": [], "research": [], "chat": []}
FIRST = {
    "order": {"item": "a globe", "cents": 5},
    "research": {"topic": "the earth", "sources": ["Bruno", "Kepler"]},
    "chat": {"messages": [{"type": "human", "content": "How is the weather in Padua?"}]},
}
NODES = {"order": {"check", "approve", "pay"}, "research": {"plan", "source", "choose", "report"}, "chat": {"agent"}}


def of(*examples):
    def note(function):
        for example in examples:
            TESTS[example].append(function)
        return function
    return note


def name():
    return sys.argv[2]


def dear(cents=25_000):
    return {"item": "a globe", "cents": cents}


@of("order", "research", "chat")
async def it_is_an_assistant_with_schemas_a_drawing_and_versions(client, _):
    found = await client.assistants.search(graph_id=name())
    assert found[0]["graph_id"] == name() and found[0]["description"], found
    assert (await client.assistants.get(found[0]["assistant_id"]))["graph_id"] == name()
    schemas = await client.assistants.get_schemas(name())
    assert set(schemas["input_schema"]["properties"]) == set(FIRST[name()]), schemas["input_schema"]
    assert schemas["state_schema"]["properties"] and schemas["output_schema"]
    drawing = await client.assistants.get_graph(name())
    assert {one["id"] for one in drawing["nodes"]} == NODES[name()] | {"__start__", "__end__"}, drawing
    assert await client.assistants.get_subgraphs(name()) is not None
    mine = await client.assistants.create(name(), name="mine", metadata={"of": "me"})
    mine = await client.assistants.update(mine["assistant_id"], name="yours")
    assert mine["version"] == 2
    assert [one["version"] for one in await client.assistants.get_versions(mine["assistant_id"])] == [2, 1]
    assert (await client.assistants.set_latest(mine["assistant_id"], 1))["name"] == "mine"
    values = await client.runs.wait(None, mine["assistant_id"], input=FIRST[name()])
    assert set(FIRST[name()]) <= set(values), values
    await client.assistants.delete(mine["assistant_id"])


@of("order", "research", "chat")
async def every_stream_mode_has_its_events(client, _):
    for mode in MODES:
        thread = await client.threads.create()
        parts = await collect(client.runs.stream(thread["thread_id"], name(), input=FIRST[name()], stream_mode=mode))
        assert parts[0].event == "metadata" and parts[0].data["run_id"], parts[0]
        names = {part.event for part in parts[1:]}
        assert "error" not in names, parts
        # Only a graph whose nodes publish something, or ask a model, has such events.
        is_silent = mode == "custom" and name() != "order" or mode == "messages-tuple" and name() != "chat"
        wanted = {"messages-tuple": "messages"}.get(mode, mode)
        assert wanted in names or is_silent, (mode, names)
    parts = await collect(client.runs.stream(None, name(), input=FIRST[name()], stream_mode=MODES, stream_subgraphs=True))
    tasks = [part.data for part in parts if part.event == "tasks"]
    assert {one["name"] for one in tasks} <= NODES[name()] and any("result" in one for one in tasks), tasks


@of("order", "research", "chat")
async def an_input_that_does_not_fit_is_refused(client, _):
    for body in ({"input": {next(iter(FIRST[name()])): 7}}, {"input": "x"}):
        try:
            await client.runs.wait(None, name(), **body)
        except httpx.HTTPStatusError as error:
            # What is no message at all is refused as by LangGraph's server.
            assert error.response.status_code in (400, 422), error
        else:
            raise AssertionError(f"accepted: {body}")


@of("order")
async def an_approval_is_answered_as_pages_do(client, _):
    for answer in (APPROVE, {"decision": "approve"}, "approve"):
        thread = await client.threads.create()
        values = await client.runs.wait(thread["thread_id"], "order", input=dear())
        asked = values["__interrupt__"][0]["value"]
        assert asked["action_requests"][0] == {
            "name": "payments.pay", "args": dear(), "description": "it costs more than 100.00"}, asked
        state = await client.threads.get(thread["thread_id"])
        assert state["status"] == "interrupted" and state["interrupts"], state
        values = await client.runs.wait(thread["thread_id"], "order", command={"resume": answer})
        assert values["receipt"] and values["log"][-2:] == ["approved", "paid"], values
    thread = await client.threads.create()
    await client.runs.wait(thread["thread_id"], "order", input=dear())
    reject = {"decisions": [{"type": "reject", "message": "too much"}]}
    values = await client.runs.wait(thread["thread_id"], "order", command={"resume": reject})
    assert values["log"][-1] == "denied: too much" and not values["receipt"], values


@of("order")
async def a_state_is_edited_through_its_reducers_and_run_on(client, _):
    thread = await client.threads.create()
    await client.runs.wait(thread["thread_id"], "order", input=dear())
    edit = {"cents": 12_000, "log": ["corrected"]}
    await client.threads.update_state(thread["thread_id"], edit)
    state = await client.threads.get_state(thread["thread_id"])
    assert state["values"]["log"] == ["a globe for 25000 cents", "corrected"] and state["next"] == ["approve"], state
    values = await client.runs.wait(thread["thread_id"], "order", input=None)
    assert values["__interrupt__"][0]["value"]["action_requests"][0]["args"]["cents"] == 12_000
    values = await client.runs.wait(thread["thread_id"], "order", command={"resume": APPROVE})
    assert values["cents"] == 12_000 and values["receipt"]
    # What an update and a way on say in one command.
    thread = await client.threads.create()
    await client.runs.wait(thread["thread_id"], "order", input=dear())
    command = {"update": {"log": ["waived"]}, "goto": "pay"}
    values = await client.runs.wait(thread["thread_id"], "order", command=command)
    assert values["log"][-2:] == ["waived", "paid"], values


@of("order")
async def its_history_is_read_and_a_branch_begun(client, _):
    thread = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread, "order", input=FIRST["order"])
    history = await client.threads.get_history(thread, limit=100)
    assert [one["next"] for one in history] == [[], ["pay"], ["check"]], history
    assert history[-1]["metadata"]["source"] == "input" and history[0]["metadata"]["graph_id"] == "order"
    for newer, older in zip(history, history[1:]):
        assert newer["parent_checkpoint"]["checkpoint_id"] == older["checkpoint"]["checkpoint_id"]
    at = history[1]["checkpoint"]["checkpoint_id"]
    values = await client.runs.wait(thread, "order", input=None, checkpoint_id=at)
    assert values["log"] == ["a globe for 5 cents", "paid"], values
    await client.threads.update_state(thread, {"item": "a lamp"}, checkpoint_id=at)
    values = await client.runs.wait(thread, "order", input=None)
    assert values["item"] == "a lamp" and values["log"] == ["a globe for 5 cents", "paid"], values
    values = await client.runs.wait(
        (await client.threads.create())["thread_id"], "order", input=FIRST["order"], interrupt_before=["pay"])
    assert not values["receipt"], values
    copy = await client.threads.copy(thread)
    assert (await client.threads.get_state(copy["thread_id"]))["values"]["item"] == "a lamp"


@of("order")
async def runs_are_made_in_the_background_listed_joined_and_batched(client, _):
    thread = (await client.threads.create(graph_id="order"))["thread_id"]
    made = await client.runs.create(thread, "order", input=FIRST["order"])
    assert (await client.runs.join(thread, made["run_id"]))["receipt"]
    assert (await client.runs.get(thread, made["run_id"]))["status"] == "success"
    assert len(await client.runs.list(thread)) == 1
    batch = await client.runs.create_batch([{"assistant_id": "order", "input": FIRST["order"]} for _ in range(3)])
    assert len(batch) == 3
    found = await client.threads.search(metadata={"graph_id": "order"}, limit=100)
    assert thread in [one["thread_id"] for one in found]
    cron = await client.crons.create("order", schedule="0 0 1 1 *", input=FIRST["order"])
    assert cron
    await client.crons.delete(cron["cron_id"])


@of("research")
async def a_fan_out_is_streamed_and_a_question_of_its_own_answered(client, _):
    thread = (await client.threads.create())["thread_id"]
    parts = await collect(client.runs.stream(
        thread, "research", input=FIRST["research"], stream_mode=["updates", "values"], stream_subgraphs=True))
    found = [part.data["source"] for part in parts if part.event == "updates" and "source" in part.data]
    assert len(found) >= 1 and parts[-1].data["findings"] == ["Bruno says it moves", "Kepler says it moves"], parts
    asked = next(part.data["__interrupt__"] for part in parts if part.event == "updates" and "__interrupt__" in part.data)
    assert asked[0]["value"]["ask"] == "How long?" and asked[0]["response_schema"]["enum"] == ["short", "long"], asked
    parts = await collect(client.runs.stream(
        thread, "research", command={"resume": "short"}, stream_mode=["updates", "messages-tuple", "values"]))
    assert parts[-1].data["report"] == "The earth moves." and parts[-1].data["length"] == "short", parts[-1]
    pieces = [part.data[0]["content"] for part in parts if part.event == "messages"]
    assert "".join(pieces) == "The earth moves.", pieces
    # By its id, as a client with several questions does.
    thread = (await client.threads.create())["thread_id"]
    values = await client.runs.wait(thread, "research", input=FIRST["research"])
    values = await client.runs.wait(thread, "research", command={"resume": {values["__interrupt__"][0]["id"]: "long"}})
    assert values["length"] == "long", values
    # An answer of another type is asked for again, with what is wrong.
    thread = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread, "research", input=FIRST["research"])
    values = await client.runs.wait(thread, "research", command={"resume": 7})
    assert "does not fit" in values["__interrupt__"][0]["value"]["problem"], values


@of("chat")
async def pieces_of_an_answer_add_up_to_the_message_of_the_state(client, _):
    thread = (await client.threads.create())["thread_id"]
    for turn in (1, 2):
        parts = await collect(client.runs.stream(
            thread, "chat", input=FIRST["chat"], stream_mode=["messages-tuple", "values"]))
        messages = parts[-1].data["messages"]
        assert [one["type"] for one in messages] == ["human", "ai"] * turn, messages
        pieces = [part.data[0] for part in parts if part.event == "messages" and part.data[0]["content"]]
        assert "".join(one["content"] for one in pieces) == messages[-1]["content"], pieces
        assert {one["id"] for one in pieces} == {messages[-1]["id"]}, pieces
    state = await client.threads.get_state(thread)
    first = state["values"]["messages"][0]
    await client.threads.update_state(thread, {"messages": [{**first, "content": "changed"}]})
    messages = (await client.threads.get_state(thread))["values"]["messages"]
    assert len(messages) == 4 and messages[0]["content"] == "changed", messages


if __name__ == "__main__":
    database, example, *words = sys.argv[1:]
    asyncio.run(run([database, *words], example=example, tests=TESTS[example]))
