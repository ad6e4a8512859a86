"""A directory with data, servers and settings, and the program and the servers that a test starts in it."""

import contextlib
import json
import os
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

HERE = Path(__file__).parent

SERVERS = {
    "files": 'args = ["mcp", "files", "--root", "papers"]\ndefault_tools_effect = "read_only"\n',
    "notes": 'args = ["mcp", "notes", "--file", "notes.jsonl"]\n',
    "sql": 'args = ["mcp", "sql", "--database", "sales.db"]\nagent = "analyst"\ndescription = "Answers questions about sales with SQL"\n',
    "papers": 'args = ["mcp", "documents", "--read-only"]\nenv_vars = ["DATABASE_URL", "OPENAI_BASE_URL", "PERIHELION_EMBEDDINGS_URL", "PERIHELION_EMBEDDINGS_MODEL"]\ndescription = "Finds passages in the documents of the house"\n',
    "python": 'args = ["mcp", "python"]\ndescription = "Runs Python programs"\n',
}

PAPERS = {
    "lease.md": "# Lease\n\nThe notice period is three months. The rent is 940 euros a month.\n",
    "boiler.md": "# Boiler\n\nWenn der Druck unter ein Bar fällt, Wasser nachfüllen.\n",
    "menu.md": "# Lunch\n\nOn Fridays there is fish with potatoes.\n",
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def serving(command, url, log):
    """Runs a server until the block ends, and waits until it answers."""
    with open(log, "w") as out:
        child = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
    try:
        for _ in range(600):
            if child.poll() is not None:
                raise SystemExit(f"{command[1]} ended: {Path(log).read_text()[-2000:]}")
            with contextlib.suppress(OSError):
                urllib.request.urlopen(url, timeout=5).close()
                break
            time.sleep(0.1)
        yield child
    finally:
        child.kill()
        child.wait()


@contextlib.contextmanager
def model_server(model, log, *template):
    port = free_port()
    command = [sys.executable, str(HERE / "server.py"), str(port), str(model), *map(str, template)]
    with serving(command, f"http://127.0.0.1:{port}/health", log):
        yield f"http://127.0.0.1:{port}"


class Ended:
    def __init__(self, args, code, out, err, seconds):
        self.args, self.code, self.out, self.err, self.seconds = args, code, out, err, seconds

    def json(self):
        return json.loads(self.out)

    def __str__(self):
        return f"{self.args} ended with {self.code} after {self.seconds:.1f} s\n{self.out[-3000:]}\n{self.err[-3000:]}"


class Place:
    def __init__(self, home, program, url):
        self.home, self.program = Path(home), program
        (self.home / "papers").mkdir()
        for name, text in PAPERS.items():
            (self.home / "papers" / name).write_text(text)
        with contextlib.closing(sqlite3.connect(self.home / "sales.db")) as database:
            database.execute("CREATE TABLE sales (city TEXT, year INTEGER, amount INTEGER)")
            rows = [("Bonn", 2024, 120), ("Bonn", 2025, 90), ("Graz", 2025, 300)]
            database.executemany("INSERT INTO sales VALUES (?, ?, ?)", rows)
            database.commit()
        for names in [tuple(SERVERS), *((name,) for name in SERVERS)]:
            tables = (f"[mcp_servers.{name}]\ncommand = {json.dumps(program)}\n{SERVERS[name]}" for name in names)
            (self.home / f"{names[0] if len(names) == 1 else 'all'}.toml").write_text("\n".join(tables))
        # Pipelines send no tools to models; as plain agents their servers do.
        tables = (f"[mcp_servers.{name}]\ncommand = {json.dumps(program)}\nagent = \"tools\"\n" for name in SERVERS)
        tables = (table + SERVERS[name].replace('agent = "analyst"\n', "") for name, table in zip(SERVERS, tables))
        (self.home / "plain.toml").write_text("\n".join(tables))
        prompts = os.environ.get("PERIHELION_PROMPTS_DIR")
        self.env = ({"PERIHELION_PROMPTS_DIR": prompts} if prompts else {}) | {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "DATABASE_URL": f"sqlite:{self.home}/perihelion.db",
            "OPENAI_BASE_URL": url,
            "OPENAI_MODEL": "smollm2",
            "PERIHELION_MODELS_MAX_TOKENS": "300",
            "PERIHELION_MODELS_CONTEXT_WINDOW": "4096",
            "PERIHELION_MODELS_PROTOCOL": "compact",
        }

    def run(self, *args, env=None, patience=900):
        began = time.monotonic()
        done = subprocess.run(
            [self.program, *args], cwd=self.home, env=self.env | (env or {}), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=patience, check=False,
        )  # fmt: skip
        return Ended(args, done.returncode, done.stdout, done.stderr, time.monotonic() - began)
