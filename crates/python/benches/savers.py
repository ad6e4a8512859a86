"""Measures PerihelionSaver beside LangGraph's savers on the star workload of benches/peers/langgraph_star.py.

Prints a JSON line per run and a table at the end. `bytes` are those of the tables with indexes (PostgreSQL) or of the
file with its log (SQLite). `saver` is the time within the methods of the saver, first and last tenth of the steps.
"""

from __future__ import annotations

import argparse
import asyncio
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


def timed(saver: Any, times: list[tuple[float, float]]) -> None:
    """Notes when each write of the saver began and how long it took."""
    for name in ("aput", "aput_writes"):
        method = getattr(saver, name)

        async def call(*arguments: Any, method: Any = method, **keywords: Any) -> Any:
            begin = time.perf_counter()
            result = await method(*arguments, **keywords)
            times.append((begin, time.perf_counter() - begin))
            return result

        setattr(saver, name, call)


async def run(options: argparse.Namespace) -> dict[str, Any]:
    star = workload()
    texts = star.Texts()
    texts.check()
    texts.prepare(options.rounds)
    times: list[tuple[float, float]] = []
    async with AsyncExitStack() as stack:
        saver = await opened(options, stack)
        warm = star.star(options, texts, 3, {}, saver)
        await warm.ainvoke(star.input_of(texts, "warm"), star.config_of("warm", 20), durability="sync")
        await saver.adelete_thread("warm")
        timed(saver, times)
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
    times.sort()
    spent = [duration for _, duration in times]
    tenth = max(1, len(steps) // 10)
    spent_tenth = max(1, len(spent) // 10)
    return {
        "engine": options.engine, "backend": options.backend, "rounds": options.rounds, "strict": options.strict,
        "wall_s": round(wall, 3), "cpu_s": round(cpu, 3), "bytes": size,
        "data_bytes": len(saver.serde.dumps_typed(dict(final))[1]),
        "step_first_us": round(statistics.median(steps[:tenth]) * 1e6),
        "step_last_us": round(statistics.median(steps[-tenth:]) * 1e6),
        "saver_first_us": round(statistics.mean(spent[:spent_tenth]) * 1e6),
        "saver_last_us": round(statistics.mean(spent[-spent_tenth:]) * 1e6),
        "load_ms": round(load * 1e3, 2), "fsync_us": star.fsync_probe(),
    }  # fmt: skip


def table(results: list[dict[str, Any]]) -> None:
    names = [
        "engine", "backend", "rounds", "wall_s", "bytes", "data_bytes", "step_first_us", "step_last_us",
        "saver_first_us", "saver_last_us", "load_ms",
    ]  # fmt: skip
    print("| " + " | ".join(names) + " |")
    print("|" + "---|" * len(names))
    for result in results:
        print("| " + " | ".join(str(result[name]) for name in names) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--backends", nargs="+", default=["sqlite", "postgres"])
    parser.add_argument("--engines", nargs="+", default=["langgraph", "perihelion"])
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args(namespace=argparse.Namespace(channels="plain", agents=1, gs_keys=64))
    lengths = options.rounds
    dsn = os.environ.get("TEST_DATABASE_URL", "")
    results = []
    for options.backend in options.backends:
        for rounds in lengths:
            options.rounds = rounds
            found: dict[str, list[dict[str, Any]]] = {}
            for _ in range(options.runs):
                for options.engine in options.engines:
                    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_TMP")) as directory:
                        options.address = f"{directory}/bench.db"
                        if options.backend == "postgres":
                            server(dsn, f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)", f"CREATE DATABASE {DATABASE}")
                            options.address = urlunsplit(urlsplit(dsn)._replace(path=f"/{DATABASE}"))
                        result = asyncio.run(run(options))
                    print(json.dumps(result), file=sys.stderr, flush=True)
                    found.setdefault(options.engine, []).append(result)
            for runs in found.values():
                results.append(sorted(runs, key=lambda one: one["wall_s"])[len(runs) // 2])
    table(results)


if __name__ == "__main__":
    main()
