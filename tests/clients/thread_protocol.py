"""A thread as one stream by langgraph-sdk: `client.threads.stream` over both transports, and the older `join_stream`."""

import asyncio

import httpx
from langgraph_sdk import get_sync_client

from cases import collect, human, test

TRANSPORTS = ("sse", "websocket")
APPROVE = {"decisions": [{"type": "approve"}]}


async def until(is_so):
    """Waits for what the client hears beside what it was asked for."""
    while not is_so():
        await asyncio.sleep(0.01)


async def events_to_the_end(thread):
    """Returns all events of a thread up to the end of a run."""
    heard = []
    async for event in thread.events:
        if event.get("type") != "event":
            continue
        heard.append(event)
        if event["method"] == "lifecycle" and event["params"]["data"]["event"] in ("completed", "failed"):
            return heard


@test
async def a_thread_is_driven_and_heard_over_both_transports(client, _):
    for transport in TRANSPORTS:
        async with client.threads.stream(assistant_id="swarm", transport=transport) as thread:
            begun = await thread.run.start(input=human("hello"), metadata={"by": transport})
            messages = [message async for message in thread.messages]
            said = [await message.text for message in messages]
            assert said == ["Hello from the star."], (transport, said)
            values = await thread.output
            assert values["answer"] == "Hello from the star." and len(values["messages"]) == 2, values
            run = await client.runs.get(thread.thread_id, begun["run_id"])
            assert run["status"] == "success" and run["metadata"]["by"] == transport, run
            tree = await thread.agent.get_tree()
            assert "supervisor" in {node["id"] for node in tree["nodes"]}
        # One who comes later hears the same, and has the state that was left.
        async with client.threads.stream(thread.thread_id, assistant_id="swarm", transport=transport) as again:
            assert (await again.output)["answer"] == "Hello from the star."
            heard = await events_to_the_end(again)
            first = heard[0]
            assert first["method"] == "lifecycle" and first["params"]["data"]["event"] == "running", first
            seqs, ids = [event["seq"] for event in heard], {event["event_id"] for event in heard}
            assert seqs == sorted(set(seqs)) and len(ids) == len(heard), seqs
            channels = {event["method"] for event in heard}
            assert {"values", "updates", "messages", "lifecycle", "checkpoints", "tasks"} <= channels, channels


@test
async def interrupts_are_heard_and_answered_over_both_transports(client, world):
    for transport in TRANSPORTS:
        async with client.threads.stream(assistant_id="swarm", transport=transport) as thread:
            await thread.run.start(input=human("twice"))
            await until(lambda: len(thread.interrupts) == 2)
            for asked in list(thread.interrupts):
                await until(lambda: asked["interrupt_id"] in {one["interrupt_id"] for one in thread.interrupts})
                await thread.run.respond(APPROVE, interrupt_id=asked["interrupt_id"])
                if asked is not thread.interrupts[-1]:
                    state = await client.threads.get_state(thread.thread_id)
                    assert state["values"].get("answer") is None, state["values"]
            assert (await thread.output)["answer"] == "Hello from the star."
            assert not thread.interrupted and thread.interrupts == []
            try:
                await thread.run.respond(APPROVE, interrupt_id=asked["interrupt_id"])
                raise AssertionError("it was answered twice")
            except RuntimeError as error:
                assert "does not match" in str(error), error
        async with client.threads.stream(assistant_id="swarm", transport=transport) as thread:
            await thread.run.start(input=human("clarify"))
            await until(lambda: thread.interrupted)
            # A message answers it as well: the next run of the same stream.
            await thread.run.start(input=human("1945"))
            assert (await thread.output)["answer"] == "Hello from the star."
    assert (world.home / "diary.jsonl").exists()


@test
async def a_stream_continues_when_its_server_was_killed(client, world):
    for transport in TRANSPORTS:
        async with client.threads.stream(assistant_id="swarm", transport=transport) as thread:
            await thread.run.start(input=human("slow"))
            heard = []
            async for event in thread.subscribe(["messages", "lifecycle"]):
                heard.append(event)
                if sum(one["method"] == "messages" for one in heard) == 4:
                    world.kill(world.process)
                    # On the same port: the client knows no other.
                    world.process, _ = world.serve(httpx.URL(world.url).port)
            assert heard[-1]["params"]["data"]["event"] == "completed", heard[-1]
        async with client.threads.stream(thread.thread_id, assistant_id="swarm") as again:
            whole = [one for one in await events_to_the_end(again) if one["method"] in ("messages", "lifecycle")]
        assert [one["event_id"] for one in heard] == [one["event_id"] for one in whole], (heard, whole)
        assert heard == whole


@test
async def a_wrong_command_is_refused_in_words(client, _):
    async with client.threads.stream(assistant_id="nobody") as thread:
        try:
            await thread.run.start(input=human("hello"))
            raise AssertionError("nobody ran it")
        except RuntimeError as error:
            assert "invalid_argument" in str(error) and "nobody" in str(error), error
    thread = (await client.threads.create())["thread_id"]
    async with client.threads.stream(thread, assistant_id="swarm") as stream:
        try:
            await anext(stream.subscribe(["gossip"]))
            raise AssertionError("there is no such channel")
        except httpx.HTTPStatusError as error:
            assert error.response.status_code == 422, error


@test
async def the_client_without_async_drives_a_thread_too(_, world):
    def drive():
        client = get_sync_client(url=world.url)
        for transport in TRANSPORTS:
            with client.threads.stream(assistant_id="swarm", transport=transport) as thread:
                thread.run.start(input=human("hello"))
                said = [str(message.text) for message in list(thread.messages)]
                assert said == ["Hello from the star."], (transport, said)
                values = thread.output() if callable(thread.output) else thread.output
                assert values["answer"] == "Hello from the star.", values
    await asyncio.to_thread(drive)


@test
async def a_thread_is_joined_over_its_runs_from_any_event(client, _):
    thread = (await client.threads.create())["thread_id"]
    heard, is_joined = [], asyncio.Event()

    async def listen():
        async for part in await client.threads.join_stream(thread):
            heard.append(part)
            is_joined.set()
            if len([one for one in heard if one.event == "metadata" and one.data.get("status") == "run_done"]) == 2:
                return
    listening = asyncio.ensure_future(listen())
    # It hears what comes from now on: runs until it does, so that nothing depends on when it was there.
    while not is_joined.is_set():
        await client.runs.wait(thread, "swarm", input=human("hello"))
    await client.runs.wait(thread, "swarm", input=human("hello again"))
    await listening
    whole = []
    async for part in await client.threads.join_stream(thread, last_event_id="-1"):
        whole.append(part)
        if part.id == heard[-1].id:
            break
    ids = [part.id for part in whole]
    assert len(set(ids)) == len(ids) and [part.id for part in heard] == ids[-len(heard):], (ids, heard)
    rest = []
    async for part in await client.threads.join_stream(thread, last_event_id=ids[2]):
        rest.append(part.id)
        if part.id == ids[-1]:
            break
    assert rest == ids[3:]
    words = []
    async for part in await client.threads.join_stream(thread, last_event_id="-1", stream_mode="lifecycle"):
        words.append(part.data.get("status", "running"))
        if part.id == ids[-1]:
            break
    assert words == ["running", "run_done"] * (len(words) // 2), words
    assert await collect(client.runs.join_stream(thread, heard[0].data["run_id"], last_event_id=heard[-1].id)) == []


@test
async def edits_of_a_thread_are_heard_beside_its_runs(client, _):
    thread = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread, "swarm", input=human("hello"))
    heard, is_joined = [], asyncio.Event()

    async def listen():
        async for part in await client.threads.join_stream(thread, stream_mode=["run_modes", "state_update"]):
            heard.append(part)
            is_joined.set()
            edits = [one for one in heard if one.event == "state_update"]
            if edits and edits[-1].data["state"]["values"]["plan"] == ["last"]:
                return
    listening = asyncio.ensure_future(listen())
    # It hears what comes from now on: edits until it does.
    while not is_joined.is_set():
        await client.threads.update_state(thread, {"plan": ["first"]}, as_node="qa")
    await client.runs.wait(thread, "swarm", input=human("hello again"))
    await client.threads.update_state(thread, {"plan": ["last"]}, as_node="qa")
    await asyncio.wait_for(listening, 30)
    assert heard[0].event == "state_update" and heard[0].data["thread_id"] == thread, heard[0]
    assert [one for one in heard if one.event == "metadata" and one.data.get("status") == "run_done"], heard
