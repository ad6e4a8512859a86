#!/usr/bin/env bash
# Measures the service on a database of its own at TEST_DATABASE_URL: postgres.sh ARGUMENTS…
set -euo pipefail
cd "$(dirname "$0")/../.."
name=bench_serve_$$
psql -q "$TEST_DATABASE_URL" -c "CREATE DATABASE $name"
trap 'psql -q "$TEST_DATABASE_URL" -c "DROP DATABASE IF EXISTS $name WITH (FORCE)"' EXIT
$BENCH_SERVE --database "${TEST_DATABASE_URL%/*}/$name" "$@"
