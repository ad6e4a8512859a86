#!/usr/bin/env bash
# Rehearses "Back up and restore" of docs/guides/deploy.md: backup.sh PROGRAM, below `tests/postgres.sh run`.
#
# The commands are those of the page. Threads are copied from a database in use, and the original is gone when the
# program finishes a crashed thread on the copy. Needs psql, pg_dump, pg_restore and sqlite3; an error without with CI=true.
set -euo pipefail
cd "$(dirname "$0")/../.."
program=$(realpath "$1")
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
source tests/releases/common.sh
for needed in psql pg_dump pg_restore sqlite3; do
    command -v "$needed" >/dev/null || { echo "backups are not rehearsed: $needed is not installed" >&2; [ "${CI:-}" != true ]; exit; }
done

# Prints the commands of the page for a database.
recipe() {
    awk -v mark="<!-- recipe: $1 -->" '$0 == mark { on = 1 } on && /^```$/ { exit } on && !/^(<!--|```)/' docs/guides/deploy.md
}

# Copies a filled database while a service has it open: `copy KIND URL`.
copy() {
    "$program" --database "$2" serve --demo --addr 127.0.0.1:0 >"$work/serve.log" 2>&1 </dev/null &
    server=$!
    for _ in $(seq 600); do grep -q 'http://127.0.0.1:' "$work/serve.log" && break; sleep 0.1; done
    local commands
    commands=$(recipe "$1")
    [ -n "$commands" ] || { echo "docs/guides/deploy.md has no recipe: $1" >&2; exit 1; }
    (cd "$work" && bash -eu -c "$commands")
    kill -TERM "$server"
    wait "$server" || true
    server=
}

# Finishes the crashed thread on a copy and compares what it lists: `continue_on URL`.
continue_on() {
    "$program" --database "$1" resume "$(crashed)" --quiet >"$work/resumed"
    diff "$work/answer" "$work/resumed"
    "$program" --database "$1" keys list | grep -q reader
    "$program" --database "$1" memory list --user ada | grep -q German
}

work_sqlite=sqlite:$work/perihelion.db
fill "$work_sqlite"
copy sqlite "$work_sqlite"
rm "$work"/perihelion.db*
continue_on "sqlite:$work/copy.db"
echo "SQLite: the crashed thread was finished on the copy"

role=backup_$$
clean() {
    psql --quiet "$TEST_DATABASE_URL" --command "DROP DATABASE IF EXISTS ${role}_old" --command "DROP DATABASE IF EXISTS ${role}_new" \
        --command "DROP ROLE IF EXISTS $role" 2>/dev/null
}
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; clean; rm -rf "$work"' EXIT
psql --quiet "$TEST_DATABASE_URL" --command "CREATE ROLE $role LOGIN PASSWORD 'of-a-test'"
create "${role}_old" "$role"
create "${role}_new" "$role"
old=$(at "${role}_old" "$role:of-a-test")
fill "$old"
ADMIN_URL=$(at "${role}_old") TARGET_URL=$(at "${role}_new") copy postgres "$old"
psql --quiet "$TEST_DATABASE_URL" --command "DROP DATABASE ${role}_old"
continue_on "$(at "${role}_new" "$role:of-a-test")"
echo "PostgreSQL: the crashed thread was finished on the copy"
