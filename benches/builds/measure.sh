#!/usr/bin/env bash
# Times cold builds and weighs the program: the engine alone as its user builds it, then the program as it is shipped.
#
# BUILDS_DIR names the directory that is built into (a fresh one, which is removed, unless given: then it must be empty).
set -euo pipefail
cd "$(dirname "$0")/../.."
directory=${BUILDS_DIR:-$(mktemp -d)}
if [ -n "$(ls -A "$directory" 2>/dev/null)" ]; then
    echo "builds would not be cold: $directory is not empty; name another one by BUILDS_DIR" >&2
    exit 2
fi
[ -n "${BUILDS_DIR:-}" ] || trap 'rm -rf "$directory"' EXIT
cargo fetch --locked

# Prints the units that took longest, from the report that cargo writes.
longest() {
    awk -F': ' '/"name":/ { gsub(/[",]/, "", $2); name = $2 } /"duration":/ { gsub(/,/, "", $2); printf "%7.1f s  %s\n", $2, name }' \
        "$1"/cargo-timings/cargo-timing.html | sort -rn | sed -n '1,8p'
}

build() {
    local title=$1 target=$2 started=$SECONDS
    shift 2
    CARGO_TARGET_DIR=$target CARGO_INCREMENTAL=0 cargo build --locked --offline --quiet --timings "$@" >/dev/null
    printf '%s: %d s on %s processors\n' "$title" $((SECONDS - started)) "$(nproc)"
    longest "$target"
}

build "the engine alone (cargo build -p perihelion-engine)" "$directory/engine" -p perihelion-engine
build "the program (cargo build --release)" "$directory/program" --release --bin perihelion
printf 'the program: %.1f MB\n' "$(stat -c %s "$directory/program/release/perihelion" | awk '{ print $1 / 1e6 }')"
