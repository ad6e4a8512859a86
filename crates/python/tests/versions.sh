#!/usr/bin/env bash
# Tests the built wheel on each version of Python that is here: versions.sh DIRECTORY WHEEL VERSION… [-- pytest options]
#
# Versions come from the PATH or from pyenv. A version that is not here is named and left out; in CI it is an error.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$1 wheel=$(realpath "$2")
shift 2
versions=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    versions+=("$1")
    shift
done
[ $# -eq 0 ] || shift

interpreter() {
    local found
    for found in "$(command -v "python$1" || true)" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python; do
        if [ -x "$found" ] && "$found" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$1')" 2>/dev/null; then
            echo "$found"
            return
        fi
    done
}

missing=()
for version in "${versions[@]}"; do
    python=$(interpreter "$version")
    if [ -z "$python" ]; then
        missing+=("$version")
        continue
    fi
    venv=$work/venv-$version
    if [ ! -e "$venv/ready" ] || [ "$here/requirements.txt" -nt "$venv/ready" ]; then
        "$python" -m venv "$venv"
        "$venv/bin/pip" install --quiet -r "$here/requirements.txt"
        touch "$venv/ready"
    fi
    "$venv/bin/pip" install --quiet --no-deps --force-reinstall "$wheel"
    echo "-- Python $version"
    "$venv/bin/pytest" --quiet -c "$here/../pyproject.toml" --rootdir "$here/.." "$here" "$@"
done
if [ ${#missing[@]} -gt 0 ]; then
    echo "not tested, because they are not here: Python ${missing[*]}" >&2
    [ -z "${CI:-}" ]
fi
