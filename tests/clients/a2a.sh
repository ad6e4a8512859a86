#!/usr/bin/env bash
# Installs what the TCK of A2A needs into a directory, once, and runs it against a server.
#
#   tests/clients/a2a.sh DIRECTORY TCK
set -euo pipefail
[ $# = 2 ] || { echo "usage: tests/clients/a2a.sh DIRECTORY TCK" >&2; exit 2; }
tck=$(cd "$2" && pwd)
cd "$(dirname "$0")/../.."
[ -d "$tck/tests/compatibility" ] || { echo "$tck is not the TCK of A2A 1.0 (its branch 1.0-dev)" >&2; exit 2; }
mkdir -p "$1"
place=$(cd "$1" && pwd)
export PERIHELION=${PERIHELION:-${CARGO_TARGET_DIR:-$PWD/target}/debug/perihelion}
export PYTHONPATH=$PWD/tests/clients PYTHONDONTWRITEBYTECODE=1

if [ ! -f "$place/tck/ready" ]; then
    python3 -m venv "$place/tck"
    "$place/tck/bin/pip" install --quiet 'pytest>=8' 'pytest-asyncio' httpx grpcio protobuf googleapis-common-protos jsonschema \
        pytest-html gherkin-official Jinja2
    touch "$place/tck/ready"
fi
"$place/tck/bin/python" tests/clients/tck.py "$tck"
