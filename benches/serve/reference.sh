#!/usr/bin/env bash
# Installs LangGraph's server from PyPI, once, and measures it by the client that measures ours: reference.sh DIRECTORY ARGUMENTS…
set -euo pipefail
cd "$(dirname "$0")/../.."
place=$1
shift
[ -x "$place/bin/python" ] || python3 -m venv "$place"
"$place/bin/pip" install --quiet 'langgraph-api==0.16.7' 'langgraph-runtime-inmem==0.36.7' 'langgraph-cli==0.4.40'
port=21240
(cd benches/serve/reference && exec env LANGSMITH_TRACING=false LOG_LEVEL=error "$place/bin/langgraph" dev --no-browser --no-reload --port $port) \
    >"$place/server.log" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
for _ in $(seq 1 600); do
    if curl -fs "http://127.0.0.1:$port/ok" >/dev/null; then break; fi
    kill -0 $server || { cat "$place/server.log" >&2; exit 1; }
    sleep 0.1
done
$BENCH_SERVE --reference "http://127.0.0.1:$port" --assistant star --pid $server "$@"
