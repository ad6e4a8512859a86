#!/usr/bin/env bash
# Measures the service on an empty and on a filled database at TEST_DATABASE_URL: scale.sh THREADS STEPS ARGUMENTS…
set -euo pipefail
cd "$(dirname "$0")/../.."
threads=$1 steps=$2
shift 2
name=bench_scale_$$
url=${TEST_DATABASE_URL%/*}/$name
psql -q "$TEST_DATABASE_URL" -c "CREATE DATABASE $name"
trap 'psql -q "$TEST_DATABASE_URL" -c "DROP DATABASE IF EXISTS $name WITH (FORCE)"' EXIT
echo "== empty"
$BENCH_SERVE --database "$url" --idle 0 "$@"
echo "== filling: $threads threads of $steps steps"
psql -q "$url" -v threads="$threads" -v steps="$steps" -f benches/serve/fill.sql
echo "== filled"
$BENCH_SERVE --database "$url" --idle 0 "$@"
