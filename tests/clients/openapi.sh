#!/usr/bin/env bash
# Holds a real server to its description at /openapi.json; TEST_DATABASE_URL adds a round on Postgres.
#
#   tests/clients/openapi.sh DIRECTORY
set -euo pipefail
cd "$(dirname "$0")/../.."
[ $# = 1 ] || { echo "usage: tests/clients/openapi.sh DIRECTORY" >&2; exit 2; }
mkdir -p "$1"
place=$(cd "$1" && pwd)
export PERIHELION=${PERIHELION:-${CARGO_TARGET_DIR:-$PWD/target}/debug/perihelion}
export PYTHONPATH=$PWD/tests/clients
# Every attempt names another number where one fails: SEED repeats it.
export SEED=${SEED:-1} EXAMPLES=${EXAMPLES:-20}

[ -x "$place/schemathesis/bin/python" ] || python3 -m venv "$place/schemathesis"
python=$place/schemathesis/bin/python
"$place/schemathesis/bin/pip" install --quiet 'schemathesis==4.32.5'
export ST=$place/schemathesis/bin/st

echo "== schemathesis, SQLite"
"$python" tests/clients/openapi.py sqlite
if [ -n "${TEST_DATABASE_URL:-}" ]; then
    echo "== schemathesis, Postgres"
    "$python" tests/clients/on_postgres.py "$TEST_DATABASE_URL" tests/clients/openapi.py
fi
