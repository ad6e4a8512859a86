#!/usr/bin/env bash
# Runs LangGraph's own tests with Perihelion's savers: run.sh DIRECTORY [pytest options]
#
# Copies the tests from LANGGRAPH_SOURCE, or from a clone of the version that is installed, and appends
# checkpointers.py to their conftest.py. PYTHON is the interpreter, TEST_DATABASE_URL the server.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$1
shift
mkdir -p "$work"
version=$("$PYTHON" -c 'from importlib.metadata import version; print(version("langgraph"))')
source=${LANGGRAPH_SOURCE:-$work/source-$version}
if [ ! -d "$source/libs/langgraph/tests" ]; then
    git clone --quiet --depth 1 --branch "$version" https://github.com/langchain-ai/langgraph "$source"
fi
rm -rf "$work/tests"
cp -r "$source/libs/langgraph/tests" "$work/tests"
cat "$here/checkpointers.py" >>"$work/tests/conftest.py"
cd "$work"
export NO_DOCKER=true PERIHELION_WAYS=${PERIHELION_WAYS:-"sqlite postgres strict sealed aes"}
names=$(echo "$PERIHELION_WAYS" | sed 's/ / or /g')
exec "$PYTHON" -m pytest -q -p no:cacheprovider tests -k "$names" "$@"
