"""Runs a command while a server is there; PERIHELION_URL names it."""

import os
import subprocess
import sys

from world import World

with World() as world:
    _, url = world.serve()
    sys.exit(subprocess.run(sys.argv[1:], env={**os.environ, "PERIHELION_URL": url}).returncode)
