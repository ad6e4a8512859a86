"""A server with its model and its MCP servers, for the tests of real clients."""

import contextlib
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BINARY = os.environ["PERIHELION"]

SERVERS = """
[mcp_servers.notes]
command = "perihelion"
args = ["mcp", "notes", "--file", "notes.jsonl"]
default_tools_approval_mode = "prompt"

[mcp_servers.diary]
command = "perihelion"
args = ["mcp", "notes", "--file", "diary.jsonl"]
default_tools_approval_mode = "prompt"
"""


class World:
    """A directory, a scripted model, and servers over one database."""

    def __init__(self, database=None, example=None):
        self.program = str(pathlib.Path(BINARY).parent / "examples" / example) if example else BINARY
        self.stack = contextlib.ExitStack()
        self.home = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        (self.home / "mcp-servers.toml").write_text("" if example else SERVERS)
        self.database = database or f"sqlite:{self.home}/threads.db"
        model = self.spawn([sys.executable, str(HERE / "model.py")], stdout=subprocess.PIPE)
        self.model = model.stdout.readline().decode().strip()

    def spawn(self, command, **more):
        process = subprocess.Popen(command, cwd=self.home, start_new_session=True, **more)
        self.stack.callback(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
            process.wait()

    def environment(self):
        return {
            **os.environ, "HOME": str(self.home), "XDG_DATA_HOME": str(self.home / "data"),
            "OPENAI_BASE_URL": self.model, "OPENAI_API_KEY": "sk-test", "OPENAI_MODEL": "scripted",
            "PERIHELION_MODELS_PROTOCOL": "full",
            "PERIHELION_SERVE_CALLBACK_HOSTS": "127.0.0.1",
            "DATABASE_URL": self.database, "PERIHELION_LOG": os.environ.get("PERIHELION_LOG", "warn"),
        }

    def serve(self, port=0):
        """Starts a server and returns its process and address."""
        command = [self.program, "serve", "--addr", f"127.0.0.1:{port}"]
        process = self.spawn(command, env=self.environment(), stderr=subprocess.PIPE)
        for line in process.stderr:
            text = line.decode()
            if "http://" in text:
                url = text[text.index("http://"):].split()[0]
                break
            sys.stderr.write(text)
        else:
            raise RuntimeError("the server did not start")
        import threading
        threading.Thread(target=lambda: [sys.stderr.write(one.decode()) for one in process.stderr], daemon=True).start()
        return process, url

    def run(self, *arguments):
        """Runs a command of the program over the same database."""
        return subprocess.run(
            [self.program, *arguments], cwd=self.home, env=self.environment(), capture_output=True, text=True, timeout=60)

    def make_due(self, cron):
        """Has a cron be due, as the clock would."""
        due = f"UPDATE service_cron SET next_at = created_at WHERE id = '{cron}'"
        if self.database.startswith("sqlite:"):
            # An id is kept as its sixteen bytes.
            due = due.replace(f"'{cron}'", f"x'{cron.replace('-', '')}'")
            with contextlib.closing(sqlite3.connect(self.database.removeprefix("sqlite:"))) as database, database:
                assert database.execute(due).rowcount == 1
        else:
            words = ["psql", self.database, "-c", "SET perihelion.all_tenants = 'on'", "-c", due]
            done = subprocess.run(words, check=True, capture_output=True, text=True)
            assert done.stdout.endswith("UPDATE 1\n"), done

    def kill(self, process):
        os.kill(process.pid, signal.SIGKILL)
        process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return self.stack.__exit__(*error)
