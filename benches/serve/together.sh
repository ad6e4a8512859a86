#!/usr/bin/env bash
# Measures the service on both databases and LangGraph's own server with two graphs, one after the other, and sets them
# side by side, on a server at TEST_DATABASE_URL:
# together.sh DIRECTORY ARGUMENTS…
set -euo pipefail
cd "$(dirname "$0")/../.."
place=$1
shift
mkdir -p "$place"
found=$place/serve.jsonl
: >"$found"
$BENCH_SERVE "$@" | tee -a "$found"
benches/serve/postgres.sh "$@" | tee -a "$found"
benches/serve/reference.sh "$place/serve-reference" "$@" | tee -a "$found"
python3 benches/serve/compare.py "$found"
