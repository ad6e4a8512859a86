#!/usr/bin/env bash
# Writes the databases of a release, which every later one must open: write.sh PROGRAM VERSION, below `tests/postgres.sh run`.
#
# `make release` calls it. Files of earlier releases are history and never written again.
set -euo pipefail
cd "$(dirname "$0")/../.."
program=$(realpath "$1")
place=$PWD/tests/golden/releases
work=$(mktemp -d)
source tests/releases/common.sh
role=release_$$
clean() {
    psql --quiet "$TEST_DATABASE_URL" --command "DROP DATABASE IF EXISTS $role" --command "DROP ROLE IF EXISTS $role" 2>/dev/null
    rm -rf "$work"
}
trap clean EXIT
[ ! -e "$place/$2.sqlite.gz" ] || { echo "the databases of $2 are there already: $place" >&2; exit 1; }
mkdir -p "$place"

fill "sqlite:$work/release.db"
crashed >"$place/$2.sqlite.thread"
# Also what is still in the log of the file.
python3 - "$work/release.db" "$place/$2.sqlite.gz" <<'PYTHON'
import gzip, pathlib, sqlite3, sys
database = sqlite3.connect(sys.argv[1])
database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
database.execute("VACUUM")
database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
database.close()
pathlib.Path(sys.argv[2]).write_bytes(gzip.compress(pathlib.Path(sys.argv[1]).read_bytes(), 9, mtime=0))
PYTHON

psql --quiet "$TEST_DATABASE_URL" --command "CREATE ROLE $role LOGIN PASSWORD 'of-a-test'"
create "$role" "$role"
fill "$(at "$role" "$role:of-a-test")"
crashed >"$place/$2.postgres.thread"
# As statements that any client can run, for any owner; commands of psql are left out.
pg_dump --inserts --rows-per-insert=50 --no-owner --no-privileges "$(at "$role")" | sed '/^\\/d' | gzip -9n >"$place/$2.postgres.gz"
ls -l "$place/$2".*
