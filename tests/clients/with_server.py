"""Runs a command while a server is there; PERIHELION_URL names it, EXAMPLE the example that serves in place of the stock program."""

import os
import subprocess
import sys

from world import World

with World(example=os.environ.get("EXAMPLE")) as world:
    _, url = world.serve()
    sys.exit(subprocess.run(sys.argv[1:], env={**os.environ, "PERIHELION_URL": url}).returncode)
