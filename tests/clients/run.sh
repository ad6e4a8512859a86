#!/usr/bin/env bash
# Installs the clients into a directory, once, and drives a server with them; TEST_DATABASE_URL adds a round on Postgres.
#
#   tests/clients/run.sh DIRECTORY
set -euo pipefail
cd "$(dirname "$0")/../.."
# What npm served in November 2026; an unpinned SDK installs a stray version 2.0.0 that lacks half of it.
VERSIONS="@langchain/langgraph-sdk@1.15.0 @langchain/langgraph@1.7.3 @langchain/core@1.4.0 openai@7.57.0 @ag-ui/langgraph@0.0.43
    @ag-ui/client@1.0.0 @ai-sdk/langchain@3.0.99 ai@7.0.173 @langchain/react@1.1.0 react@19.3.1 react-dom@19.3.1
    react-test-renderer@19.3.1 ws@8.23.0"

[ $# = 1 ] || { echo "usage: tests/clients/run.sh DIRECTORY" >&2; exit 2; }
mkdir -p "$1"
place=$(cd "$1" && pwd)
export PERIHELION=${PERIHELION:-${CARGO_TARGET_DIR:-$PWD/target}/debug/perihelion}
export PYTHONPATH=$PWD/tests/clients

[ -x "$place/python/bin/python" ] || python3 -m venv "$place/python"
"$place/python/bin/pip" install --quiet 'langgraph-sdk==0.4.14' 'openai>=3,<4'
# The mark is written last: an installation that was broken off, or was of other versions, is made again.
if [ "$(cat "$place/npm/installed" 2>/dev/null)" != "$VERSIONS" ]; then
    mkdir -p "$place/npm"
    # shellcheck disable=SC2086
    (cd "$place/npm" && npm init -y >/dev/null && npm install --no-audit --no-fund --silent --save-exact $VERSIONS)
    echo "$VERSIONS" >"$place/npm/installed"
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
echo "== npm: what the client from PyPI is held to"
"$place/python/bin/python" tests/clients/with_server.py node "$place/npm/core.mjs"
echo "== npm: a remote graph"
"$place/python/bin/python" tests/clients/with_server.py node "$place/npm/remote.mjs"
echo "== npm: later endpoints"
"$place/python/bin/python" tests/clients/with_server.py node "$place/npm/later.mjs"
echo "== npm: the thread protocol"
"$place/python/bin/python" tests/clients/with_server.py node "$place/npm/thread_protocol.mjs"
echo "== npm: bridges of other protocols"
"$place/python/bin/python" tests/clients/with_server.py node "$place/npm/bridges.mjs"
echo "== npm: React"
"$place/python/bin/python" tests/clients/with_server.py node "$place/npm/hooks.mjs"
for example in order research chat; do
    echo "== the example $example: PyPI, npm"
    "$place/python/bin/python" tests/clients/graphs.py sqlite "$example"
    if [ -n "${TEST_DATABASE_URL:-}" ]; then
        "$place/python/bin/python" tests/clients/on_postgres.py "$TEST_DATABASE_URL" tests/clients/graphs.py "$example"
    fi
    EXAMPLE=$example "$place/python/bin/python" tests/clients/with_server.py node "$place/npm/graphs.mjs"
done
