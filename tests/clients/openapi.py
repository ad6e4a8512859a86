"""Runs schemathesis against a real server: openapi.py sqlite|URL [PATTERN]."""

import os
import pathlib
import subprocess
import sys

from world import World

HERE = pathlib.Path(__file__).resolve().parent
database, *patterns = sys.argv[1:]
# Otherwise the first key that is made would lock the tests out.
TOKEN = "a-token-of-many-letters"
os.environ["PERIHELION_SERVE_TOKEN"] = TOKEN

with World(None if database == "sqlite" else database) as world:
    _, url = world.serve()
    command = [
        os.environ["ST"], "--config-file", str(HERE / "schemathesis.toml"), "run", f"{url}/openapi.json",
        "--url", url, "--header", f"x-api-key: {TOKEN}", "--max-examples", os.environ.get("EXAMPLES", "20"), "--seed", os.environ.get("SEED", "1"),
        *[word for pattern in patterns for word in ("--include-path-regex", pattern)],
    ]
    # What it keeps of its run is nobody's business here.
    code = subprocess.run(command, cwd=world.home, env=dict(os.environ, no_proxy="127.0.0.1")).returncode
sys.exit(code)
