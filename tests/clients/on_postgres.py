"""Runs a test with a database of its own on a Postgres server: on_postgres.py URL SCRIPT [WORDS…]."""

import subprocess
import sys
import uuid

url, script, *words = sys.argv[1:]
name = f"test_{uuid.uuid4().hex}"
base = url.rsplit("/", 1)[0]


def sql(text):
    subprocess.run(["psql", "-q", url, "-c", text], check=True)


sql(f"CREATE DATABASE {name}")
try:
    code = subprocess.run([sys.executable, script, f"{base}/{name}", *words]).returncode
finally:
    sql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
sys.exit(code)
