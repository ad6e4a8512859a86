#!/usr/bin/env bash
# Stands in for rustdoc (RUSTDOC): checks a crate's documentation before its examples are tested.
#
# `cargo doc` would compile every dependency once more; here the documentation is read with what was built for the tests.
set -euo pipefail
real=${REAL_RUSTDOC:-rustdoc}
tests=
documents=()
arguments=("$@")
for ((index = 0; index < ${#arguments[@]}; index++)); do
    case ${arguments[index]} in
    --test) tests=yes ;;
    --test-run-directory | --test-args | --test-runtool | --test-runtool-arg) index=$((index + 1)) ;;
    --test-run-directory=* | --test-args=* | --no-run | --nocapture) ;;
    *) documents+=("${arguments[index]}") ;;
    esac
done
if [ "$tests" = yes ]; then
    output=$(mktemp -d)
    trap 'rm -rf "$output"' EXIT
    "$real" "${documents[@]}" --out-dir "$output" -D warnings
fi
"$real" "$@"
