#!/usr/bin/env bash
# Installs LangGraph's server from PyPI, once, and measures it by the client that measures ours, with two graphs one
# after the other: `least` asks no model and keeps nothing, `like` does what ours does, its checkpoints on Postgres:
# reference.sh DIRECTORY ARGUMENTS…
set -euo pipefail
cd "$(dirname "$0")/../.."
place=$1
shift
[ -x "$place/bin/python" ] || python3 -m venv "$place"
"$place/bin/pip" install --quiet 'langgraph-api==0.16.7' 'langgraph-runtime-inmem==0.36.7' 'langgraph-cli==0.4.40' \
    'langgraph-checkpoint-postgres==3.2.0' 'langchain-openai==1.7.4' 'psycopg[binary,pool]'
port=21240
model=21241
name=bench_reference_$$
psql -q "$TEST_DATABASE_URL" -c "CREATE DATABASE $name"
server=
stop() {
    [ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null || true
    server=
}
finish() {
    stop
    psql -q "$TEST_DATABASE_URL" -c "DROP DATABASE IF EXISTS $name WITH (FORCE)"
}
trap finish EXIT

measure() {
    local graph=$1
    shift
    (cd "benches/serve/reference/$graph" && exec env LANGSMITH_TRACING=false LOG_LEVEL=error MODEL_URL="http://127.0.0.1:$model/v1" \
        CHECKPOINTS_URL="${TEST_DATABASE_URL%/*}/$name" "$place/bin/langgraph" dev --no-browser --no-reload \
        --port $port) >"$place/server-$graph.log" 2>&1 &
    server=$!
    for _ in $(seq 1 600); do
        if curl -fs "http://127.0.0.1:$port/ok" >/dev/null; then break; fi
        kill -0 $server || { cat "$place/server-$graph.log" >&2; exit 1; }
        sleep 0.1
    done
    $BENCH_SERVE --reference "http://127.0.0.1:$port" --named "reference, $graph" --model-port $model --assistant star --pid $server "$@"
    stop
}

measure least "$@"
measure like "$@"
