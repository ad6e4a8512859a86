#!/usr/bin/env bash
# Installs the clients into a directory, once, and drives a server with them; TEST_DATABASE_URL adds a round on Postgres.
#
#   tests/clients/run.sh DIRECTORY
set -euo pipefail
cd "$(dirname "$0")/../.."
[ $# = 1 ] || { echo "usage: tests/clients/run.sh DIRECTORY" >&2; exit 2; }
mkdir -p "$1"
place=$(cd "$1" && pwd)
export PERIHELION=${PERIHELION:-${CARGO_TARGET_DIR:-$PWD/target}/debug/perihelion}
export PYTHONPATH=$PWD/tests/clients

[ -x "$place/python/bin/python" ] || python3 -m venv "$place/python"
"$place/python/bin/pip" install --quiet 'langgraph-sdk==0.4.14' 'openai>=3,<4'
if [ ! -d "$place/npm/node_modules/@ag-ui/langgraph" ] || [ ! -d "$place/npm/node_modules/ws" ]; then
    mkdir -p "$place/npm"
    # An unpinned SDK installs a stray version 2.0.0 that lacks half of it.
    (cd "$place/npm" && npm init -y >/dev/null &&
        npm install --no-audit --no-fund --silent @langchain/langgraph-sdk@1.15.0 @langchain/langgraph @langchain/core openai \
        @ag-ui/langgraph@0.0.43 @ag-ui/client @ai-sdk/langchain@3 ai @langchain/react@1.1.0 react@19 react-dom@19 react-test-renderer@19 ws@8)
fi

echo "== PyPI, SQLite"
"$place/python/bin/python" tests/clients/python.py sqlite
if [ -n "${TEST_DATABASE_URL:-}" ]; then
    echo "== PyPI, Postgres"
    "$place/python/bin/python" tests/clients/on_postgres.py "$TEST_DATABASE_URL" tests/clients/python.py
fi
echo "== npm"
cp tests/clients/*.mjs "$place/npm/"
"$place/python/bin/python" tests/clients/with_server.py node "$place/npm/javascript.mjs"
echo "== npm: later endpoints"
"$place/python/bin/python" tests/clients/with_server.py node "$place/npm/later.mjs"
echo "== npm: the thread protocol"
"$place/python/bin/python" tests/clients/with_server.py node "$place/npm/thread_protocol.mjs"
echo "== npm: bridges of other protocols, and React"
"$place/python/bin/python" tests/clients/with_server.py node "$place/npm/bridges.mjs"
