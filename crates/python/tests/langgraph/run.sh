#!/usr/bin/env bash
# Runs LangGraph's own tests with Perihelion's savers and stores: run.sh DIRECTORY [pytest options]
#
# The tests come from LANGGRAPH_SOURCE, a checkout, or from the source packages of the installed versions. PYTHON is the
# interpreter, TEST_DATABASE_URL the server. excluded.txt lists the tests that are left out, with the reasons.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$1
shift
mkdir -p "$work"

# Copies the tests of a package: copy PACKAGE DIRECTORY-IN-CHECKOUT NAME
copy() {
    local version source
    if [ -n "${LANGGRAPH_SOURCE:-}" ]; then
        source=$LANGGRAPH_SOURCE/libs/$2
    else
        version=$("$PYTHON" -c "from importlib.metadata import version; print(version('$1'))")
        source=$work/${1//-/_}-$version
        if [ ! -d "$source/tests" ]; then
            "$PYTHON" -m pip download --quiet --no-deps --no-binary "$1" --dest "$work" "$1==$version"
            tar -xzf "$source.tar.gz" -C "$work"
        fi
    fi
    rm -rf "${work:?}/$3"
    mkdir -p "$work/$3"
    cp -r "$source/tests" "$work/$3/tests"
}

# Runs copied tests: run NAME [pytest options]
run() {
    local name=$1 left_out=()
    shift
    while read -r test; do
        left_out+=(--deselect "$test")
    done < <(sed -n "s/^$name \([^ ]*\).*/\1/p" "$here/excluded.txt")
    (cd "$work/$name" && "$PYTHON" -m pytest -q -p no:cacheprovider "${left_out[@]}" tests "$@")
}

export NO_DOCKER=true PERIHELION_WAYS=${PERIHELION_WAYS:-"sqlite postgres strict sealed aes"}
copy langgraph langgraph pregel
cat "$here/checkpointers.py" >>"$work/pregel/tests/conftest.py"
copy langgraph-checkpoint-sqlite checkpoint-sqlite store-sqlite
copy langgraph-checkpoint-postgres checkpoint-postgres store-postgres
for name in store-sqlite store-postgres; do
    cat "$here/stores.py" >>"$work/$name/tests/conftest.py"
    (cd "$work/$name/tests" && find . -name 'test_*.py' ! -name 'test*_store.py' ! -name test_ttl.py -delete)
done
sed -i "s|^DEFAULT_\(POSTGRES_\)\?URI = .*|DEFAULT_\1URI = '$TEST_DATABASE_URL'|" "$work/store-postgres/tests/conftest.py"

failed=0
run store-sqlite -o asyncio_mode=auto "$@" || failed=1
run store-postgres -o asyncio_mode=auto "$@" || failed=1
run pregel -k "${PERIHELION_WAYS// / or }" "$@" || failed=1
exit $failed
