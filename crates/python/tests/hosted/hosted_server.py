"""`perihelion serve --graphs`, started and killed by the tests."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

PROGRAM = os.environ.get("HOSTED_PROGRAM", "")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """A server of the graphs of a file beside this one, in a directory of its own."""

    def __init__(self, home: Path, database: str, graphs: dict[str, Any], file: str = "hosted_graphs", **more: Any) -> None:
        self.home, self.database = home, database
        self.log = home / "nodes.log"
        self.log.touch()
        shutil.copy(Path(__file__).with_name(f"{file}.py"), home / "graphs.py")
        env = {"HOSTED_LOG": str(self.log), "HOSTED_FIXED": str(home / "fixed")}
        config = {"dependencies": ["."], "graphs": graphs, "env": env, **more}
        (home / "langgraph.json").write_text(json.dumps(config))
        self.environment: dict[str, str] = {}
        self.process: subprocess.Popen[bytes] | None = None
        self.port = 0

    def start(self) -> None:
        self.port = free_port()
        environment = {**os.environ, "VIRTUAL_ENV": sys.prefix, "PERIHELION_STORE_LEASE_SEC": "2", **self.environment}
        command = [PROGRAM, "serve", "--addr", f"127.0.0.1:{self.port}", "--graphs", str(self.home / "langgraph.json")]
        out = (self.home / "server.log").open("ab")
        self.process = subprocess.Popen(
            [*command, "--database", self.database], env=environment, cwd=self.home, stdout=out, stderr=out
        )
        for _ in range(600):
            if self.process.poll() is not None:
                raise RuntimeError((self.home / "server.log").read_text())
            try:
                httpx.get(f"{self.url}/ok")
                return
            except Exception:
                time.sleep(0.1)
        self.kill()
        raise TimeoutError((self.home / "server.log").read_text())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def client(self) -> SyncLangGraphClient:
        return get_sync_client(url=self.url)

    def children(self) -> list[int]:
        assert self.process
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        found = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True).stdout
        pids = [int(pid) for pid in found.split()] or [int(pid) for pid in listed.read_text().split()]
        return [pid for pid in pids if b"perihelion.host" in Path(f"/proc/{pid}/cmdline").read_bytes()]

    def kill(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def lines(self) -> list[str]:
        return self.log.read_text().splitlines()

    def wait_for(self, line: str) -> None:
        for _ in range(600):
            if line in self.lines():
                return
            time.sleep(0.05)
        raise TimeoutError(f"no {line!r} in {self.lines()}: {(self.home / 'server.log').read_text()}")


def count_of(database: str, table: str, where: str) -> int:
    """Counts rows in the database of a server."""
    sql = f"SELECT count(*) FROM perihelion_{table} WHERE {where}"
    if database.startswith("sqlite:"):
        with contextlib.closing(sqlite3.connect(database.removeprefix("sqlite:"))) as file:
            return int(file.execute(sql).fetchone()[0])
    import psycopg

    with psycopg.connect(database) as connection:
        found = connection.execute(sql.encode()).fetchone()
        return int(found[0]) if found else 0


def thread_of(client: SyncLangGraphClient) -> str:
    return str(client.threads.create()["thread_id"])


def part_of(parts: list[Any], event: str) -> list[Any]:
    return [part.data for part in parts if part.event == event]
