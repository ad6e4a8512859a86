"""The star workload on LangGraph, printed as the same JSON lines as ours.

`docs/project/performance-engine.md` defines workload and fields. The checksum proves that both engines are given the
same texts; a figure is printed only when the final state holds all of them.
"""

import argparse
import asyncio
import contextlib
import hashlib
import importlib.metadata
import json
import math
import operator
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Annotated, TypedDict

CHECKSUM = "e5f33792e963bfc9"
LENGTHS = {"sup": 200, "plan": 200, "msg": 1024, "result": 1024, "entry": 64, "qa": 200, "task": 200, "input": 200}
STARTED = "STAR_BENCH_STARTED_NS"
DATABASE = "langgraph_bench"
TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
SQLITE_FULL = 2  # the `synchronous` that our store sets: a commit is on disk when it returns
U64 = 2**64 - 1


def splitmix64(state):
    while True:
        state = (state + 0x9E3779B97F4A7C15) & U64
        mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & U64
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & U64
        yield mixed ^ (mixed >> 31)


class Texts:
    """Texts by stream and number; kept once made, so that `prepare` takes them out of the clock."""

    def __init__(self):
        draws = splitmix64(42)
        self.words, self.kept = [], {}
        for _ in range(1024):
            draw = next(draws)
            count, draw, word = 1 + draw % 3, draw >> 8, ""
            for _ in range(count):
                word += "bcdfghjklmnprstv"[draw & 15] + "aeio"[draw >> 4 & 3]
                draw >>= 6
            self.words.append(word)

    def make(self, stream, k, length):
        text = ""
        for draw in splitmix64(list(LENGTHS).index(stream) << 32 | k):
            if len(text) >= length:
                return text[:-1][:length]  # spaces stand between words only
            text += "".join(self.words[draw >> 10 * place & 1023] + " " for place in range(6))

    def __call__(self, stream, k=0):
        key = stream, k
        if key not in self.kept:
            self.kept[key] = self.make(stream, k, LENGTHS[stream])
        return self.kept[key]

    def prepare(self, rounds):
        for k in range(rounds + 1):
            for stream in LENGTHS:
                self(stream, k)

    def check(self):
        samples = "".join(self.make(stream, k, 1024) for stream in LENGTHS for k in (0, 1, 999))
        found = hashlib.sha256(samples.encode()).hexdigest()[:16]
        assert found == CHECKSUM, f"these are not the workload's texts: {found}"


def star(options, texts, rounds, entries, checkpointer):
    """Builds the graph; `entries` maps an input to the list of its node entries."""
    from langgraph.graph import END, START, StateGraph

    def joined(old, *writes):
        new = dict(old)
        for write in writes:
            new.update(write)
        return new

    def extended(old, writes):
        new = list(old)
        for write in writes:
            new.extend(write)
        return new

    growing_list, growing_dict = Annotated[list, operator.add], Annotated[dict, lambda old, new: joined(old, new)]
    seldom = growing_list
    if options.channels == "delta":
        from langgraph.channels.delta import DeltaChannel

        growing_list = Annotated[list, DeltaChannel(extended, snapshot_frequency=100)]
        growing_dict = Annotated[dict, DeltaChannel(lambda old, writes: joined(old, *writes), snapshot_frequency=100)]

    State = TypedDict("State", {
        "input_request": str, "messages": growing_list, "tasks": seldom, "results": growing_list,
        "plan": str, "global_state": growing_dict, "citations": seldom, "next_step": str,
    })
    agents = [f"agent_{number}" for number in range(options.agents)]

    def said(id, name, content):
        return {"id": id, "role": "assistant", "name": name, "content": content}

    def node(write):
        def run(state):
            seen = entries.get(state["input_request"])
            if seen is not None:
                seen.append(time.perf_counter())
            return write(len(state["results"]))

        return run

    def preprocess(_):
        task = {"id": "t-0", "status": "open", "description": texts("task")}
        return {"tasks": [task], "plan": texts("plan"), "next_step": "supervisor"}

    def supervisor(k):
        return {
            "messages": [said(f"s-{k}", "supervisor", texts("sup", k))],
            "plan": texts("plan", k),
            "next_step": agents[k % len(agents)] if k < rounds else "qa",
        }

    def agent(name):
        def write(k):
            key = k % options.gs_keys if options.gs_keys else k
            return {
                "messages": [said(f"a-{k}", name, texts("msg", k))],
                "results": [{"id": f"r-{k}", "agent": name, "content": texts("result", k)}],
                "global_state": {f"key_{key}": texts("entry", k)},
            }

        return write

    def qa(_):
        return {"messages": [said("qa-0", "qa", texts("qa"))], "next_step": "end"}

    graph = StateGraph(State)
    for name, write in [("preprocess", preprocess), ("supervisor", supervisor), ("qa", qa)]:
        graph.add_node(name, node(write))
    for name in agents:
        graph.add_node(name, node(agent(name)))
        graph.add_edge(name, "supervisor")
    graph.add_edge(START, "preprocess")
    graph.add_edge("preprocess", "supervisor")
    graph.add_conditional_edges("supervisor", lambda state: state["next_step"], [*agents, "qa"])
    graph.add_edge("qa", END)
    return graph.compile(checkpointer=checkpointer)


def input_of(texts, thread):
    return {
        "input_request": f"{thread} {texts('input')}", "messages": [], "tasks": [], "results": [],
        "plan": "", "global_state": {}, "citations": [], "next_step": "",
    }


def config_of(thread, limit):
    return {"configurable": {"thread_id": thread}, "recursion_limit": limit}


# ---- databases: one of our own, beside the one that is named


def address(options):
    from psycopg.conninfo import make_conninfo

    return make_conninfo(options.dsn, dbname=DATABASE)


def server(options, *statements):
    import psycopg

    with psycopg.connect(options.dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def fresh(options):
    if options.backend == "postgres":
        server(options, f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)", f"CREATE DATABASE {DATABASE}", "CHECKPOINT")


def drop(options):
    if options.backend == "postgres":
        server(options, f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")


def ask(options, statement, *values):
    import psycopg

    with psycopg.connect(address(options), autocommit=True) as connection:
        return int(connection.execute(statement, values).fetchone()[0])


def wal(options):
    if options.backend == "postgres":
        return ask(options, "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")
    return 0


def stored(options):
    """Bytes in all, and by table."""
    if options.backend == "postgres":
        tables = {
            name: {
                "bytes": ask(options, "SELECT pg_total_relation_size(%s::regclass)", name),
                "rows": ask(options, f"SELECT count(*) FROM {name}"),
            }
            for name in TABLES
        }
        return sum(table["bytes"] for table in tables.values()), tables
    if options.backend == "sqlite":
        parts = [pathlib.Path(options.sqlite + ending) for ending in ("", "-wal")]
        return sum(part.stat().st_size for part in parts if part.exists()), None
    return None, None


async def sqlite_settings(saver):
    """What the saver's connection promises of the disk; another promise than ours is not measured beside ours."""
    settings = {}
    for name in ("journal_mode", "synchronous"):
        async with saver.conn.execute(f"PRAGMA {name}") as cursor:
            [settings[name]] = await cursor.fetchone()
    assert settings["synchronous"] == SQLITE_FULL, f"it does not flush every commit as ours does: {settings}"
    return settings


@contextlib.asynccontextmanager
async def opened(options):
    """The checkpointers: one in its documented use, and on Postgres one for each thread that runs at once.

    A saver holds one lock and one connection, so that one alone would take all threads' writes in turn.
    """
    if options.backend == "memory":
        from langgraph.checkpoint.memory import InMemorySaver

        yield [InMemorySaver()]
    elif options.backend == "sqlite":
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

        async with AsyncSqliteSaver.from_conn_string(options.sqlite) as saver:
            await saver.setup()
            options.sqlite_settings = await sqlite_settings(saver)
            yield [saver]
    else:
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

        async with contextlib.AsyncExitStack() as stack:
            opening = (AsyncPostgresSaver.from_conn_string(address(options)) for _ in range(options.threads))
            savers = [await stack.enter_async_context(saver) for saver in opening]
            await savers[0].setup()
            yield savers


# ---- measures


def fsync_probe():
    times = []
    with tempfile.TemporaryFile(dir=os.environ.get("BENCH_TMP")) as file:
        for _ in range(40):
            begin = time.perf_counter()
            os.pwrite(file.fileno(), bytes(8192), 0)
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - begin)
    return round(statistics.median(times) * 1e6, 1)


def peak_memory():
    status = pathlib.Path("/proc/self/status").read_text()
    return round(int(status.split("VmHWM:")[1].split()[0]) / 1024, 1)


def summary(threads):
    def tenth(steps):
        return max(1, len(steps) // 10)

    figures = {}
    for name, times in {
        "first10": [step for steps in threads for step in steps[: tenth(steps)]],
        "last10": [step for steps in threads for step in steps[-tenth(steps) :]],
        "all": [step for steps in threads for step in steps],
    }.items():
        times.sort()
        figures[f"{name}_mean_us"] = round(statistics.mean(times) * 1e6, 1)
        figures[f"{name}_median_us"] = round(statistics.median(times) * 1e6, 1)
        figures[f"{name}_p99_us"] = round(times[math.ceil(0.99 * len(times)) - 1] * 1e6, 1)
    return figures


async def run(options):
    texts, rounds = Texts(), options.rounds
    texts.check()
    texts.prepare(rounds)
    probe = fsync_probe()
    names = [f"t{number}" for number in range(options.threads)]
    inputs = {name: input_of(texts, name) for name in names}
    entries = {given["input_request"]: [] for given in inputs.values()}
    durability = {"durability": options.durability}
    begins, ends, finals = {}, {}, {}
    async with opened(options) as savers:
        for number, saver in enumerate(savers):
            warm = star(options, texts, 3, {}, saver)
            await warm.ainvoke(input_of(texts, "warm"), config_of(f"warm{number}", 20), **durability)
            await saver.adelete_thread(f"warm{number}")
        graphs = [star(options, texts, rounds, entries, saver) for saver in savers]

        async def one(number, name):
            graph = graphs[number % len(graphs)]
            begins[name] = time.perf_counter()
            finals[name] = await graph.ainvoke(inputs[name], config_of(name, 2 * rounds + 10), **durability)
            ends[name] = time.perf_counter()

        wal_before, cpu = wal(options), time.process_time()
        begin = time.perf_counter()
        await asyncio.gather(*(one(number, name) for number, name in enumerate(names)))
        wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
        wal_written = wal(options) - wal_before if options.backend == "postgres" else None
    for final in finals.values():
        assert len(final["messages"]) == 2 * rounds + 2 and len(final["results"]) == rounds
        assert len(final["global_state"]) == (min(rounds, options.gs_keys) or rounds)
    latencies, first = [], []
    for name in names:
        seen = [*entries[inputs[name]["input_request"]], ends[name]]
        first.append(seen[0] - begins[name])
        latencies.append([after - before for before, after in zip(seen, seen[1:])])
    count = sum(map(len, latencies))
    assert count == options.threads * (2 * rounds + 3), count
    db_bytes, db_tables = stored(options)
    return {
        "bench": "star", **identity(options), "rounds": rounds, "threads": options.threads,
        "durability": options.durability, "steps": count, "wall_s": round(wall, 4),
        "steps_per_s": round(count / wall, 1), "first_node_us": round(statistics.median(first) * 1e6, 1),
        **summary(latencies), "cpu_s": round(cpu, 3), "db_bytes": db_bytes, "db_tables": db_tables,
        "wal_bytes": wal_written, "fsync_probe_us": probe, "max_rss_mb": peak_memory(), "workload": CHECKSUM,
        "load1": os.getloadavg()[0],
    }


def identity(options):
    return {
        "engine": "langgraph", "engine_version": importlib.metadata.version("langgraph"),
        "backend": options.backend, "runtime": f"python {sys.version.split()[0]}",
        "sqlite": options.sqlite_settings,
        "variant": {"channels": options.channels, "agents": options.agents, "gs_keys": options.gs_keys},
    }


async def store_for_resume(options, rounds):
    """Leaves a thread after so many rounds, before its agent, by running out of steps."""
    from langgraph.errors import GraphRecursionError

    texts = Texts()
    async with opened(options) as [saver, *_]:
        graph = star(options, texts, options.rounds, {}, saver)
        with contextlib.suppress(GraphRecursionError):
            await graph.ainvoke(input_of(texts, "t0"), config_of("t0", 2 * rounds + 2), durability="sync")


async def child(options):
    def since():
        return (time.time_ns() - int(os.environ[STARTED])) / 1e6

    import langgraph.graph  # noqa: F401  (what it costs to load counts as start-up)

    marks = {"main": since()}
    async with opened(options) as [saver, *_]:
        marks["open"] = since()
        graph = star(options, Texts(), options.rounds, {}, saver)
        config = config_of("t0", 10)
        before = await graph.aget_state(config)
        marks["state"] = since()
        assert before.next[0].startswith("agent"), before.next
        await graph.ainvoke(None, config, interrupt_after="*", durability="sync")
        marks["step"] = since()
        await graph.ainvoke(None, config, interrupt_after="*", durability="sync")
        after = await graph.aget_state(config)
        assert len(after.values["results"]) == len(before.values["results"]) + 1
    held = {"messages": len(before.values["messages"]), "results": len(before.values["results"])}
    print(json.dumps({**marks, **held, "rss_mb": peak_memory()}))


def resume(options, arguments):
    asyncio.run(store_for_resume(options, options.rounds - 100))
    runs = []
    for _ in range(5):
        command = [sys.executable, __file__, *arguments, "--child", "--sqlite", options.sqlite]
        environment = {**os.environ, STARTED: str(time.time_ns())}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
        runs.append(json.loads(done.stdout.splitlines()[-1]))

    def middle(later, earlier=None):
        return round(statistics.median(run[later] - (run[earlier] if earlier else 0) for run in runs), 2)

    return {
        "bench": "resume", **identity(options), "stored_messages": runs[0]["messages"],
        "stored_results": runs[0]["results"], "runs": len(runs), "process_to_imported_ms": middle("main"),
        "connect_ms": middle("open", "main"), "process_to_state_ms": middle("state"),
        "process_to_step_ms": middle("step"), "open_to_state_ms": middle("state", "open"),
        "open_to_step_ms": middle("step", "open"), "state_to_step_ms": middle("step", "state"),
        "max_rss_mb": middle("rss_mb"), "fsync_probe_us": fsync_probe(), "load1": os.getloadavg()[0],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", choices=("star", "resume"), default="star")
    parser.add_argument("--backend", choices=("memory", "sqlite", "postgres"), required=True)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--channels", choices=("plain", "delta"), default="plain")
    parser.add_argument("--durability", choices=("sync", "async", "exit"), default="sync")
    parser.add_argument("--agents", type=int, default=1)
    parser.add_argument("--gs-keys", type=int, default=64)
    parser.add_argument("--dsn", default=os.environ.get("TEST_DATABASE_URL"))
    parser.add_argument("--sqlite")
    parser.add_argument("--child", action="store_true")
    options = parser.parse_args()
    options.sqlite_settings = None
    if options.child:
        return asyncio.run(child(options))
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_TMP")) as folder:
        options.sqlite = os.path.join(folder, "star.db")
        fresh(options)
        try:
            line = resume(options, sys.argv[1:]) if options.bench == "resume" else asyncio.run(run(options))
            print(json.dumps(line))
        finally:
            drop(options)


if __name__ == "__main__":
    main()
