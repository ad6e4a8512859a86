"""Measures PerihelionSaver beside LangGraph's savers on the star workload of benches/peers/langgraph_star.py.

Prints a JSON line per run and a table at the end. `bytes` are those of the tables with indexes (PostgreSQL) or of the
file with its log (SQLite). `step` is the time from one node to the next. `own` is the time of the saver alone: its
calls are recorded and made again without the graph, each step by itself. `step` has the medians of the first and the
last tenth of the steps, `own` the lower quartiles: other work on the machine only adds to it.

With --check it measures only what does not depend on the machine, and fails if a ratio is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib.util
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import urlsplit, urlunsplit

ROOT = pathlib.Path(__file__).resolve().parents[3]
DATABASE = "perihelion_bench_savers"
TABLES = {
    "langgraph": ("checkpoints", "checkpoint_blobs", "checkpoint_writes"),
    "perihelion": ("perihelion_checkpoints", "perihelion_values", "perihelion_writes"),
}


def workload() -> Any:
    path = ROOT / "benches/peers/langgraph_star.py"
    spec = importlib.util.spec_from_file_location("langgraph_star", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def server(dsn: str, *statements: str) -> None:
    import psycopg

    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


async def opened(options: argparse.Namespace, stack: AsyncExitStack) -> Any:
    address = options.address
    if options.engine == "perihelion":
        from perihelion import AsyncPerihelionSaver

        return await stack.enter_async_context(AsyncPerihelionSaver.from_conn_string(address, strict=options.strict))
    if options.backend == "sqlite":
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

        saver: Any = await stack.enter_async_context(AsyncSqliteSaver.from_conn_string(address))
    else:
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

        saver = await stack.enter_async_context(AsyncPostgresSaver.from_conn_string(address))
    await saver.setup()
    return saver


def stored(options: argparse.Namespace) -> int:
    if options.backend == "sqlite":
        parts = [pathlib.Path(options.address + ending) for ending in ("", "-wal")]
        return sum(part.stat().st_size for part in parts if part.exists())
    import psycopg

    with psycopg.connect(options.address, autocommit=True) as connection:
        sizes = [
            connection.execute("SELECT pg_total_relation_size(%s::regclass)", (table,)).fetchone()
            for table in TABLES[options.engine]
        ]
    return sum(size[0] for size in sizes if size)


def record(saver: Any, calls: list[tuple[str, Any]]) -> None:
    """Notes the writes of the saver; lists and dicts are never changed in place here, so references are enough."""
    for name in ("aput", "aput_writes"):
        method = getattr(saver, name)

        async def call(*arguments: Any, name: str = name, method: Any = method) -> Any:
            calls.append((name, arguments))
            return await method(*arguments)

        setattr(saver, name, call)


async def own_times(options: argparse.Namespace, calls: list[tuple[str, Any]]) -> list[float]:
    """Makes recorded calls again on an empty database, those of a step at once, and returns the time of each step."""
    times: list[float] = []
    gc.freeze()
    async with AsyncExitStack() as stack:
        saver = await opened(options, stack)
        step = []
        for name, arguments in calls:
            step.append(getattr(saver, name)(*arguments))
            if name == "aput":
                begin = time.perf_counter()
                await asyncio.gather(*step)
                times.append(time.perf_counter() - begin)
                step = []
    gc.unfreeze()
    return times


async def run(options: argparse.Namespace) -> dict[str, Any]:
    star = workload()
    texts = star.Texts()
    texts.check()
    texts.prepare(options.rounds)
    calls: list[tuple[str, Any]] = []
    fresh(options)
    async with AsyncExitStack() as stack:
        saver = await opened(options, stack)
        warm = star.star(options, texts, 3, {}, saver)
        await warm.ainvoke(star.input_of(texts, "warm"), star.config_of("warm", 20), durability="sync")
        await saver.adelete_thread("warm")
        record(saver, calls)
        given = star.input_of(texts, "t0")
        entries = {given["input_request"]: []}
        graph = star.star(options, texts, options.rounds, entries, saver)
        config = star.config_of("t0", 2 * options.rounds + 10)
        cpu, begin = time.process_time(), time.perf_counter()
        final = await graph.ainvoke(given, config, durability="sync")
        wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
        assert len(final["messages"]) == 2 * options.rounds + 2 and len(final["results"]) == options.rounds
        begin = time.perf_counter()
        loaded = await saver.aget_tuple(config)
        load = time.perf_counter() - begin
        assert loaded.checkpoint["channel_values"]["messages"] == final["messages"]
        size = stored(options)
    seen = [*entries[given["input_request"]], begin]
    steps = [after - before for before, after in zip(seen, seen[1:])]
    own: list[float] = []
    if options.engine == "perihelion":
        fresh(options)
        own = await own_times(options, calls)
    return {
        "engine": options.engine, "backend": options.backend, "rounds": options.rounds, "strict": options.strict,
        "wall_s": round(wall, 3), "cpu_s": round(cpu, 3), "bytes": size,
        "data_bytes": len(saver.serde.dumps_typed(dict(final))[1]),
        **tenths("step", steps, 2), **tenths("own", own, 4), "load_ms": round(load * 1e3, 2), "fsync_us": star.fsync_probe(),
    }  # fmt: skip


def tenths(name: str, times: list[float], parts: int) -> dict[str, int | None]:
    """Returns the lowest of quantiles for the first and the last tenth: the median for two parts."""
    tenth = max(2, len(times) // 10)
    ends = {"first": times[:tenth], "last": times[-tenth:]}
    return {
        f"{name}_{end}_us": round(statistics.quantiles(some, n=parts)[0] * 1e6) if some else None
        for end, some in ends.items()
    }


def table(results: list[dict[str, Any]]) -> None:
    names = [
        "engine", "backend", "rounds", "wall_s", "bytes", "data_bytes", "step_first_us", "step_last_us",
        "own_first_us", "own_last_us", "load_ms",
    ]  # fmt: skip
    print("| " + " | ".join(names) + " |")
    print("|" + "---|" * len(names))
    for result in results:
        print("| " + " | ".join(str(result[name]) for name in names) + " |")


def fresh(options: argparse.Namespace) -> None:
    """Makes an empty database."""
    if options.backend == "postgres":
        dsn = os.environ["TEST_DATABASE_URL"]
        server(dsn, f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)", f"CREATE DATABASE {DATABASE}")
        options.address = urlunsplit(urlsplit(dsn)._replace(path=f"/{DATABASE}"))
    else:
        options.directory = tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_TMP"))
        options.address = f"{options.directory.name}/bench.db"


def measured(options: argparse.Namespace, engine: str, backend: str, rounds: int) -> dict[str, Any]:
    options.engine, options.backend, options.rounds = engine, backend, rounds
    result = asyncio.run(run(options))
    print(json.dumps(result), file=sys.stderr, flush=True)
    return result


def middle(runs: list[dict[str, Any]]) -> dict[str, Any]:
    return sorted(runs, key=lambda one: one["wall_s"])[len(runs) // 2]


def check(options: argparse.Namespace) -> bool:
    """Measures ratios, each more than once, because other work on the machine disturbs single runs."""
    found = []
    for backend in ("sqlite", "postgres"):
        longs = [measured(options, "perihelion", backend, 1000) for _ in range(3)]
        own = min(long["own_last_us"] / long["own_first_us"] for long in longs)
        found.append((f"own time of the last by the first tenth, 1,000 rounds, {backend}", own, 1.1))
        found.append((f"bytes by data, 1,000 rounds, {backend}", longs[0]["bytes"] / longs[0]["data_bytes"], 3.0))
        pairs = [[measured(options, engine, backend, 10) for engine in ENGINES] for _ in range(7)]
        shorts = [min(pair[place]["wall_s"] for pair in pairs) for place in (0, 1)]
        found.append((f"10 rounds, by LangGraph's saver, {backend}", shorts[1] / shorts[0], 1.1))
    pair = [measured(options, engine, "postgres", 300) for engine in ENGINES]
    found.append(("300 rounds, by LangGraph's saver, postgres", pair[1]["wall_s"] / pair[0]["wall_s"], 0.5))
    for name, ratio, limit in found:
        print(f"{'ok    ' if ratio <= limit else 'MISSED'} {name}: {ratio:.2f}, at most {limit}")
    return all(ratio <= limit for _, ratio, limit in found)


ENGINES = ("langgraph", "perihelion")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--backends", nargs="+", default=["sqlite", "postgres"])
    parser.add_argument("--engines", nargs="+", default=ENGINES)
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(namespace=argparse.Namespace(channels="plain", agents=1, gs_keys=64))
    if options.check:
        sys.exit(0 if check(options) else "a ratio was missed")
    lengths = options.rounds
    results = []
    for backend in options.backends:
        for rounds in lengths:
            found: dict[str, list[dict[str, Any]]] = {}
            for _ in range(options.runs):
                for engine in options.engines:
                    found.setdefault(engine, []).append(measured(options, engine, backend, rounds))
            results += [middle(runs) for runs in found.values()]
    table(results)


if __name__ == "__main__":
    main()
