#!/usr/bin/env bash
# Measures the service on an empty and on a filled database at TEST_DATABASE_URL: scale.sh THREADS STEPS EFFECTS ARGUMENTS…
#
# A thread of 20 steps and 10 calls takes about 25 KB, and the server's log up to 4 GB on top.
set -euo pipefail
cd "$(dirname "$0")/../.."
threads=$1 steps=$2 effects=$3
shift 3
name=bench_scale_$$
url=${TEST_DATABASE_URL%/*}/$name
psql -q "$TEST_DATABASE_URL" -c "CREATE DATABASE $name"
trap 'psql -q "$TEST_DATABASE_URL" -c "DROP DATABASE IF EXISTS $name WITH (FORCE)"' EXIT
echo "== empty"
$BENCH_SERVE --database "$url" --idle 0 "$@"
echo "== filling: $threads threads of $steps steps and $effects calls"
began=$SECONDS
psql -q "$url" -v threads="$threads" -v steps="$steps" -v effects="$effects" -f benches/serve/fill.sql
echo "== filled in $((SECONDS - began)) s"
$BENCH_SERVE --database "$url" --idle 0 "$@"
