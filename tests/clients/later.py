"""The later endpoints by langgraph-sdk: assistants, items, crons, batches, webhooks, pruning."""

import asyncio
import uuid
from datetime import datetime, timezone
from zoneinfo import ZoneInfo

import httpx

from cases import collect, human, test
from receiver import Receiver


async def refused(status, asked):
    """Asks for what must be refused, with a status."""
    try:
        found = await asked
    except httpx.HTTPStatusError as error:
        assert error.response.status_code == status, error.response.text
    else:
        raise AssertionError(f"it was not refused: {found}")


@test
async def assistants_are_made_versioned_and_searched(client, _):
    own = (await client.assistants.search(graph_id="swarm"))[0]
    assert own["assistant_id"] == (await client.assistants.get(own["assistant_id"]))["assistant_id"]
    graph = await client.assistants.get_graph(own["assistant_id"], xray=True)
    assert {"supervisor", "mcp_agent_notes", "qa"} <= {node["id"] for node in graph["nodes"]}
    assert (await client.assistants.get_schemas(own["assistant_id"]))["graph_id"] == "swarm"
    assert await client.assistants.get_subgraphs(own["assistant_id"], recurse=True) == {}
    made = await client.assistants.create(
        "swarm", metadata={"o": "me"}, name="mine", description="Mine.", config={"configurable": {"k": "v"}})
    place = made["assistant_id"]
    assert made["context"] == {"k": "v"} and made["version"] == 1
    changed = await client.assistants.update(place, metadata={"o": "you"}, name="yours", context={"k": "w"})
    assert changed["version"] == 2 and changed["description"] == "Mine."
    assert [one["version"] for one in await client.assistants.get_versions(place)] == [2, 1]
    assert [one["version"] for one in await client.assistants.get_versions(place, limit=1, offset=1)] == [1]
    assert [one["version"] for one in await client.assistants.get_versions(place, metadata={"o": "me"})] == [1]
    latest = await client.assistants.set_latest(place, 1)
    assert (latest["metadata"], latest["name"]) == ({"o": "me"}, "mine")
    again = await client.assistants.create("swarm", assistant_id=place, if_exists="do_nothing")
    assert again["name"] == "mine"
    await refused(409, client.assistants.create("swarm", assistant_id=place))
    other = await client.assistants.create("swarm", metadata={"o": "me"}, name="another")
    found = await client.assistants.search(
        metadata={"o": "me"}, sort_by="name", sort_order="asc", select=["assistant_id", "name"])
    assert found == [{"assistant_id": other["assistant_id"], "name": "another"}, {"assistant_id": place, "name": "mine"}]
    page = await client.assistants.search(metadata={"o": "me"}, limit=1, response_format="object")
    assert len(page["assistants"]) == 1 and page["next"] == "1", page
    assert await client.assistants.count(metadata={"o": "me"}) == 2
    assert await client.assistants.count(name="nobody") == 0
    values = await client.runs.wait(None, place, input=human("hello"))
    assert values["answer"] == "Hello from the star."
    for one in (place, other["assistant_id"]):
        await client.assistants.delete(one)
        await refused(404, client.assistants.get(one))
    await refused(409, client.assistants.delete(own["assistant_id"]))


@test
async def items_are_kept_found_listed_and_forgotten(client, _):
    root = f"r{uuid.uuid4().hex}"
    await client.store.put_item([root, "a", "b"], "k", {"v": 1, "text": "apples"})
    await client.store.put_item([root, "a", "c"], "k", {"v": 2, "text": "pears"})
    first = await client.store.get_item([root, "a", "b"], "k")
    assert first["value"] == {"v": 1, "text": "apples"} and first["namespace"] == [root, "a", "b"]
    await client.store.put_item([root, "a", "b"], "k", {"v": 3, "text": "Apples"})
    second = await client.store.get_item([root, "a", "b"], "k")
    assert second["value"]["v"] == 3 and second["created_at"] == first["created_at"] <= second["updated_at"]
    assert await client.store.get_item([root, "a"], "k") is None

    async def found(*prefix, **more):
        items = (await client.store.search_items([root, *prefix], **more))["items"]
        return [item["namespace"][-1] for item in items]
    assert await found("a") == ["b", "c"], "the newest update first"
    assert await found("a", filter={"v": 2}) == ["c"]
    assert await found(query="apples") == ["b"]
    assert await found(limit=1, offset=1) == ["c"]
    assert await found("nothing") == []

    async def names(**more):
        return (await client.store.list_namespaces(prefix=[root], **more))["namespaces"]
    assert await names() == [[root, "a", "b"], [root, "a", "c"]]
    assert await names(suffix=["c"]) == [[root, "a", "c"]]
    assert await names(max_depth=2) == [[root, "a"]]
    assert await names(limit=1, offset=1) == [[root, "a", "c"]]
    await client.store.delete_item([root, "a", "b"], "k")
    await client.store.delete_item([root, "a", "b"], "k")
    assert await client.store.get_item([root, "a", "b"], "k") is None
    assert await found() == ["c"]
    # Minutes: it is there for a month.
    await client.store.put_item([root, "a", "d"], "k", {"v": 4}, ttl=43_200)
    assert (await client.store.get_item([root, "a", "d"], "k"))["value"] == {"v": 4}


@test
async def crons_are_made_found_changed_and_deleted(client, _):
    thread = (await client.threads.create())["thread_id"]
    mark = {"test": uuid.uuid4().hex}
    of_thread = await client.crons.create_for_thread(
        thread, "swarm", schedule="0 0 1 1 *", input=human("hello"), metadata=mark,
        timezone=ZoneInfo("Europe/Berlin"), stream_mode=["values"], multitask_strategy="reject")
    assert of_thread["thread_id"] == thread and of_thread["timezone"] == "Europe/Berlin"
    assert of_thread["next_run_date"].split("T")[0].endswith("12-31"), of_thread["next_run_date"]
    end = datetime(2099, 1, 1, tzinfo=timezone.utc)
    alone = await client.crons.create(
        "swarm", schedule="30 7 * * MON-FRI", input=human("hello"), metadata=mark, end_time=end, enabled=False,
        on_run_completed="keep")
    place = alone["cron_id"]
    assert alone["thread_id"] is None and alone["next_run_date"] is None and alone["on_run_completed"] == "keep"
    ids = [of_thread["cron_id"], place]

    async def found(**more):
        return [one["cron_id"] for one in await client.crons.search(**more)]
    assert await found(thread_id=thread) == ids[:1]
    assert await found(metadata=mark, assistant_id="swarm", sort_by="created_at", sort_order="asc") == ids
    assert await found(metadata=mark, enabled=False) == ids[1:]
    assert await found(metadata=mark, sort_by="next_run_date", limit=1, offset=1) == ids[1:]
    assert await client.crons.search(thread_id=thread, select=["cron_id", "schedule"]) == [
        {"cron_id": ids[0], "schedule": "0 0 1 1 *"}]
    assert await client.crons.count(metadata=mark) == 2
    assert await client.crons.count(thread_id=thread, assistant_id="swarm") == 1
    changed = await client.crons.update(place, schedule="0 6 * * *", enabled=True, timezone="Asia/Tokyo")
    assert changed["schedule"] == "0 6 * * *" and changed["enabled"] and "T21:00:00" in changed["next_run_date"]
    assert changed["end_time"] and changed["metadata"] == mark
    assert (await client.crons.update(place, end_time=None))["end_time"] is None
    await refused(422, client.crons.create("swarm", schedule="now and then", input=human("hello")))
    await refused(422, client.crons.create("nobody", schedule="0 0 1 1 *", input=human("hello")))
    for one in ids:
        await client.crons.delete(one)
        await refused(404, client.crons.delete(one))
    assert await client.crons.count(metadata=mark) == 0


@test
async def a_cron_that_is_due_runs_once_and_says_so(client, world):
    thread = (await client.threads.create())["thread_id"]
    with Receiver() as receiver:
        more = {"schedule": "0 0 1 1 *", "input": human("hello"), "webhook": receiver.url}
        kept = await client.crons.create("swarm", on_run_completed="keep", **more)
        of_thread = await client.crons.create_for_thread(thread, "swarm", **more)
        for cron in (kept, of_thread):
            world.make_due(cron["cron_id"])
        heard = [(await asyncio.to_thread(receiver.next))[0] for _ in range(2)]
        heard = {one["metadata"]["cron_id"]: one for one in heard}
        for cron in (kept, of_thread):
            one = heard[cron["cron_id"]]
            assert one["status"] == "success" and one["values"]["answer"] == "Hello from the star.", one
            runs = await client.runs.list(one["thread_id"])
            assert [run["run_id"] for run in runs] == [one["run_id"]], runs
            now = (await client.crons.search(metadata=None, limit=100, sort_by="created_at"))
            now = next(found for found in now if found["cron_id"] == cron["cron_id"])
            assert now["next_run_date"] == cron["next_run_date"], now
            await client.crons.delete(cron["cron_id"])
        assert heard[of_thread["cron_id"]]["thread_id"] == thread
        assert (await client.threads.get_state(thread))["values"]["answer"] == "Hello from the star."
        assert receiver.is_empty()


@test
async def a_batch_begins_all_of_its_runs_or_fails_as_a_whole(client, _):
    thread = (await client.threads.create())["thread_id"]
    mark = {"test": uuid.uuid4().hex}
    with Receiver() as receiver:
        one = {"assistant_id": "swarm", "input": human("hello"), "webhook": receiver.url, "metadata": mark}
        runs = await client.runs.create_batch([one, {**one, "input": human("clarify")}, {**one, "thread_id": thread}])
        assert len({run["run_id"] for run in runs}) == 3 and len({run["thread_id"] for run in runs}) == 3
        assert runs[2]["thread_id"] == thread and all(run["metadata"]["test"] == mark["test"] for run in runs)
        heard = [(await asyncio.to_thread(receiver.next))[0] for _ in runs]
        heard = {each["run_id"]: each["values"] for each in heard}
        assert heard[runs[0]["run_id"]]["answer"] == "Hello from the star."
        assert heard[runs[1]["run_id"]]["__interrupt__"][0]["value"]["question"] == "Which year?"
        assert (await client.runs.join(thread, runs[2]["run_id"]))["answer"] == "Hello from the star."
        before = await client.runs.list(thread)
        wrong = [{**one, "thread_id": thread}, {"assistant_id": "nobody", "input": human("hello")}]
        await refused(422, client.runs.create_batch(wrong))
        assert await client.runs.list(thread) == before, "nothing was begun"
        assert receiver.is_empty()


@test
async def a_webhook_hears_of_each_run_once_when_it_has_ended(client, _):
    thread = (await client.threads.create())["thread_id"]
    with Receiver() as receiver:
        asked = await client.runs.create(thread, "swarm", input=human("approve this"), webhook=receiver.url)
        body, headers = await asyncio.to_thread(receiver.next)
        assert body["run_id"] == asked["run_id"] and body["thread_id"] == thread and body["status"] == "success"
        assert body["values"]["__interrupt__"][0]["value"]["action_requests"][0]["name"] == "notes.append_note", body
        for name in ("run_started_at", "run_ended_at", "webhook_sent_at"):
            assert datetime.fromisoformat(body[name]), name
        assert headers["content-type"] == "application/json" and headers["x-perihelion-delivery"], headers
        parts = await collect(client.runs.stream(
            thread, "swarm", command={"resume": {"decisions": [{"type": "approve"}]}}, webhook=receiver.url))
        body, later = await asyncio.to_thread(receiver.next)
        assert body["run_id"] == parts[0].data["run_id"] and body["values"]["answer"] == "Hello from the star."
        assert later["x-perihelion-delivery"] != headers["x-perihelion-delivery"]
        slow = await client.runs.create(thread, "swarm", input=human("slow"), webhook=receiver.url)
        await client.runs.cancel(thread, slow["run_id"], wait=True)
        body, _ = await asyncio.to_thread(receiver.next)
        assert (body["run_id"], body["status"]) == (slow["run_id"], "interrupted"), body
        assert receiver.is_empty()
        await refused(422, client.runs.create(thread, "swarm", input=human("hello"), webhook="http://169.254.169.254/"))


@test
async def threads_are_pruned_and_many_runs_cancelled(client, _):
    threads = [(await client.threads.create())["thread_id"] for _ in range(3)]
    for thread in threads[:2]:
        await client.runs.wait(thread, "swarm", input=human("hello"))
    assert await client.threads.prune(threads[:1], strategy="keep_latest") == {"pruned_count": 1}
    history = await client.threads.get_history(threads[0], limit=100)
    assert len(history) == 1 and history[0]["values"]["answer"] == "Hello from the star.", len(history)
    assert await client.threads.prune(threads[1:2]) == {"pruned_count": 1}
    await refused(404, client.threads.get(threads[1]))
    runs = [await client.runs.create(threads[2], "swarm", input=human("slow")) for _ in range(2)]
    await client.runs.cancel_many(thread_id=threads[2], run_ids=[run["run_id"] for run in runs])
    for run in runs:
        await client.runs.join(threads[2], run["run_id"])
        assert (await client.runs.get(threads[2], run["run_id"]))["status"] == "interrupted"
