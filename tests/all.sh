#!/usr/bin/env bash
# Builds once, then runs every test: documentation, examples, unit and integration tests, a short torture.
#
# The tests get a PostgreSQL from tests/postgres.sh, or use the one that TEST_DATABASE_URL names. With
# cargo-nextest installed each test runs in a process of its own; without it `cargo test` runs them all.
# Arguments go to the last of these: `tests/all.sh tidy` runs the tests with "tidy" in their names.
set -euo pipefail
cd "$(dirname "$0")/.."

# Temporary files lie in memory where there is room for them and programs may be started there: on a disk, the tests on
# SQLite and PostgreSQL wait for it most of the time. Gone at the end, as is what a test that was killed left in it.
if [ "${1:-}" != "--with-postgres" ]; then
    room=$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1) || room=
    free=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo 2>/dev/null) || free=
    if [ -z "${TMPDIR:-}" ] && [ "${room:-0}" -ge 4000000 ] && [ "${free:-0}" -ge 6000000 ]; then
        place=$(mktemp -d /dev/shm/tests.XXXXXX)
        trap 'rm -rf "$place"' EXIT
        trap 'exit 130' INT
        trap 'exit 143' TERM HUP
        cp "$(type -P true)" "$place/true"
        if "$place/true"; then chmod 1777 "$place" && export TMPDIR=$place; fi
    fi
    tests/postgres.sh run tests/all.sh --with-postgres "$@"
    exit
fi
shift

started=$SECONDS
heading() { printf '\n== %s (%d s so far)\n\n' "$*" $((SECONDS - started)); }

# Prints the seconds that each test binary took in all, then the ten slowest tests.
times() {
    local rows
    rows=$(sed -n 's/.*<testcase name="\([^"]*\)" classname="\([^"]*\)".* time="\([^"]*\)".*/\3 \2 \1/p' "$1")
    awk '{ sum[$2] += $1; count[$2]++ } END { for (binary in sum) printf "%9.1f s  %5d tests  %s\n", sum[binary], count[binary], binary }' <<<"$rows" | sort -rn
    echo
    sort -rn <<<"$rows" | head | awk '{ printf "%9.1f s  %s %s\n", $1, $2, $3 }'
}

# The sandbox is tested as it is where bubblewrap can be had, and as a refusal elsewhere; mail, on a Dovecot of its own;
# backups of SQLite, by its own command; scans, by Tesseract.
needs_packages() {
    ! command -v bwrap >/dev/null || ! command -v sqlite3 >/dev/null || ! command -v tesseract >/dev/null || ! [ -x /usr/sbin/dovecot ]
}
if needs_packages && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    install=(apt-get install -y --no-install-recommends bubblewrap dovecot-imapd sqlite3 tesseract-ocr)
    export DEBIAN_FRONTEND=noninteractive
    "${install[@]}" >/dev/null 2>&1 || { apt-get update && "${install[@]}"; } >/dev/null 2>&1 ||
        echo "no bubblewrap, SQLite, Dovecot or Tesseract here: the sandbox, backups, mail and scans cannot be tested whole" >&2
fi

heading "Building the program, its examples and its tests"
cargo build --locked --workspace --lib --bins --examples
# With LINT=true, as .ci/run has it, also what is not run here, because building lints it.
more=()
[ "${LINT:-}" != true ] || more=(--benches --test backends --test servers)
cargo test --locked --workspace --lib --bins --tests --test torture "${more[@]}" --no-run

heading "Examples"
# Each runs by itself, without arguments, a key or a network. As built above: another selection of packages would build
# with other features, and most of it once more.
target=${CARGO_TARGET_DIR:-target}
for example in examples/*.rs; do
    [ -e "$example" ] || continue
    name=$(basename "$example" .rs)
    echo "-- $name"
    "$target/debug/examples/$name" </dev/null
done

case "${1:-backup}" in
backup)
    heading "Backups, restored"
    tests/releases/backup.sh "$target/debug/perihelion"
    if [ $# -gt 0 ]; then exit; fi
    ;;
esac

# One after another they leave a core idle, so they run beside what waits for downloads and servers, and are shown after it.
documentation=$(mktemp)
(
    heading "Documentation tests"
    cargo test --locked --workspace --doc --quiet
) >"$documentation" 2>&1 &
reading=$!
shown() {
    local status=0
    wait "$reading" || status=$?
    cat "$documentation"
    [ "$status" = 0 ] || exit "$status"
}

# On a server of its own, from PyPI; left out where that cannot be had, but in CI.
case "${1:-pgvector}" in
pgvector)
    heading "Searches by meaning in a PostgreSQL with pgvector"
    tests/pgvector.sh try cargo test --locked --quiet --workspace --test both -- --include-ignored pgvector
    if [ $# -gt 0 ]; then shown; exit; fi
    ;;
esac

# Behind llama.cpp's server, both from PyPI; left out where they cannot be had.
case "${1:-real-model}" in
real-model)
    heading "A small real model"
    tests/models/run.sh "$target/debug/perihelion" short
    if [ $# -gt 0 ]; then exit; fi
    ;;
esac

# With LangGraph from PyPI; left out where that cannot be had, but in CI.
case "${1:-python-package}" in
python-package)
    heading "The Python package, the short part of its tests"
    tests/python.sh
    if [ $# -gt 0 ]; then shown; exit; fi
    ;;
esac
shown

# By itself: it counts on processes getting their turns.
case "${1:-torture}" in
torture)
    heading "Torture, the short run"
    cargo test --locked --quiet --workspace --test torture -- short
    if [ $# -gt 0 ]; then exit; fi
    ;;
esac

# What docs/project/tests.md names must be among the tests that run.
selected=(--locked --workspace --lib --bins --tests)
names=$target/names-of-tests.txt
if cargo nextest --version >/dev/null 2>&1; then
    cargo nextest list "${selected[@]}" --message-format oneline >"$names"
else
    # Each after the binary that it is of, which cargo names beside the list.
    cargo test "${selected[@]}" -- --list --format terse 2>&1 | awk '
        /^ +Running / { binary = $NF; sub(/.*\//, "", binary); sub(/-[0-9a-f]+\)$/, "", binary) }
        /: test$/ { sub(/: test$/, ""); print binary, $0 }' >"$names"
fi
TEST_NAMES=$(realpath "$names")
export TEST_NAMES

if cargo nextest --version >/dev/null 2>&1; then
    heading "Unit and integration tests, with cargo-nextest"
    status=0
    # Many wait for a clock, so two more than there are cores keep the cores busy.
    cargo nextest run "${selected[@]}" --no-fail-fast --test-threads $(($(getconf _NPROCESSORS_ONLN) + 2)) "$@" || status=$?
    heading "What the tests took"
    # nextest writes beside the workspace, wherever the target directory is.
    times target/nextest/default/junit.xml || true
    exit "$status"
else
    heading "Unit and integration tests, with cargo test (cargo-nextest is not installed)"
    cargo test "${selected[@]}" --no-fail-fast -- "$@"
fi
