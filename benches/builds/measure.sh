#!/usr/bin/env bash
# Measures cold builds, the builds after one changed line, and the size of the program.
#
# BUILDS_DIR names the directory to build into (a fresh one, removed afterwards, unless given; then it must be empty).
# BUILDS names the parts: program, loop (needs program), engine, release, bench (needs release). All by default.
set -euo pipefail
cd "$(dirname "$0")/../.."
directory=${BUILDS_DIR:-$(mktemp -d)}
if [ -n "$(ls -A "$directory" 2>/dev/null)" ]; then
    echo "builds would not be cold: $directory is not empty; name another one by BUILDS_DIR" >&2
    exit 2
fi
changed=
clean() {
    [ -z "$changed" ] || cp "$directory/unchanged" "$changed"
    [ -n "${BUILDS_DIR:-}" ] || rm -rf "$directory"
}
trap clean EXIT
parts=" ${BUILDS:-program loop engine release bench} "
cargo fetch --locked
export CARGO_NET_OFFLINE=true
TIMEFORMAT='%R %U %S'

# Prints the number of units, then the ten that took longest, from the report that cargo writes.
longest() {
    local rows
    rows=$(awk -F': ' '/"name":/ { gsub(/[",]/, "", $2); name = $2 } /"target":/ { gsub(/[",]/, "", $2); unit = $2 }
        /"duration":/ { gsub(/,/, "", $2); printf "%7.1f s  %s%s\n", $2, name, unit }' "$1"/cargo-timings/cargo-timing.html | sort -rn)
    printf '  %d units; the longest:\n' "$(wc -l <<<"$rows")"
    sed -n '1,10p' <<<"$rows"
}

# Runs a command and prints what it took: seconds of wall time, and of processor time with all that it started.
measure() {
    local title=$1 took
    shift
    took=$({ time "$@" >/dev/null 2>"$directory/output" || { cat "$directory/output" >&2; exit 1; }; } 2>&1)
    awk -v title="$title" -v processors="$(nproc)" '{
        printf "%s: %.0f s, %.0f s of processor time on %d processors\n", title, $1, $2 + $3, processors }' <<<"$took"
}

cold() {
    local title=$1 target=$2
    shift 2
    CARGO_TARGET_DIR=$target measure "$title" cargo build --locked --quiet --timings "$@"
    longest "$target"
}

# Changes one line of the star, builds, and takes the change back.
after_a_change() {
    local title=$1 file=crates/star/src/menu.rs
    shift
    cp "$file" "$directory/unchanged"
    changed=$file
    printf '// %s\n' "$RANDOM" >>"$file"
    CARGO_TARGET_DIR=$directory/program measure "$title" "$@"
    cp "$directory/unchanged" "$file"
    changed=
}

case $parts in *" program "*)
    CARGO_INCREMENTAL=1 cold "the program (cargo build)" "$directory/program" --bin perihelion
    ;;
esac
case $parts in *" loop "*)
    CARGO_TARGET_DIR=$directory/program cargo check --locked --quiet
    after_a_change "cargo check after one line of the star" cargo check --locked --quiet
    after_a_change "cargo build after one line of the star" cargo build --locked --quiet --bin perihelion
    ;;
esac
case $parts in *" engine "*)
    CARGO_INCREMENTAL=0 cold "the engine alone (cargo build -p perihelion-engine)" "$directory/engine" -p perihelion-engine
    ;;
esac
case $parts in *" release "*)
    cold "the released program (cargo build --release)" "$directory/release" --release --bin perihelion
    printf 'its size: %.1f MB\n' "$(stat -c %s "$directory/release/release/perihelion" | awk '{ print $1 / 1e6 }')"
    ;;
esac
case $parts in *" bench "*)
    CARGO_TARGET_DIR=$directory/release measure "a bench after it (cargo bench -p perihelion-benches --bench star --no-run)" \
        cargo bench --locked --quiet -p perihelion-benches --bench star --no-run
    ;;
esac
