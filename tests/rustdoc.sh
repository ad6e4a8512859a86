#!/usr/bin/env bash
# Stands in for rustdoc (RUSTDOC): checks a crate's documentation before its examples are tested.
#
# `cargo doc` would compile every dependency once more; here the documentation is read with what was built for the tests.
set -euo pipefail
real=${REAL_RUSTDOC:-rustdoc}
tests=
root=
documents=()
arguments=("$@")
for ((index = 0; index < ${#arguments[@]}; index++)); do
    case ${arguments[index]} in
    --test) tests=yes ;;
    --test-run-directory | --test-args | --test-runtool | --test-runtool-arg) index=$((index + 1)) ;;
    --test-run-directory=* | --test-args=* | --no-run | --nocapture) ;;
    *) documents+=("${arguments[index]}") ;;
    esac
    case ${arguments[index]} in *.rs) root=${arguments[index]} ;; esac
done
if [ "$tests" = yes ]; then
    output=$(mktemp -d)
    trap 'rm -rf "$output"' EXIT
    "$real" "${documents[@]}" --out-dir "$output" -D warnings
    # To find that there are no examples, rustdoc would read the whole crate once more. What may be one is fenced or
    # indented, in comments of lines or blocks, or in a file that is included.
    if [ -f "$root" ] && ! grep -rqE '//[/!]( {5,}|.*(```|~~~))|/\*[*!]|doc *= ' "$(dirname "$root")"; then exit; fi
fi
"$real" "$@"
