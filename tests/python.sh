#!/usr/bin/env bash
# Builds the Python package for speed of building and runs the short part of its tests: tests/python.sh [pytest options]
#
# The tests run on SQLite, with LangGraph from PyPI; `make test-python` runs all of them on both databases. PYTHON is the
# interpreter. Where Python 3.10, PyPI or crates.io cannot be had, this says so and does nothing; in CI it fails.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
crate=crates/python
needed=$crate/tests/requirements-short.txt
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target"
home=$(cd "$target" && pwd)/python-package
build=(--quiet --locked --manifest-path "$crate/Cargo.toml" --target-dir "$home")

leave_out() {
    echo "the Python package is not tested here: $1" >&2
    [ -z "${CI:-}" ] || exit 1
    exit 0
}

# Installed beside its place and moved there whole: an installation that was interrupted is not taken for one.
install() {
    if [ -d "$site" ]; then return; fi
    mkdir -p "$home"
    local new status=0
    new=$(mktemp -d "$home/new.XXXXXX")
    local options=(--quiet --disable-pip-version-check --no-warn-conflicts)
    PIP_ROOT_USER_ACTION=ignore "$python" -m pip install "${options[@]}" --target "$new" -r "$needed" >&2 || status=$?
    [ "$status" != 0 ] || mv "$new" "$site"
    rm -rf "$new"
    return "$status"
}

ask='import sys; print("%d.%d" % sys.version_info[:2] if sys.version_info >= (3, 10) else "")'
version=$("$python" -c "$ask" 2>/dev/null) || version=
[ -n "$version" ] || leave_out "it needs Python 3.10 or later"
site=$home/site-$version-$(cksum <"$needed" | cut -d' ' -f1)
install || leave_out "LangGraph could not be installed from PyPI"
cargo fetch --quiet --locked --manifest-path "$crate/Cargo.toml" || leave_out "its dependencies could not be fetched from crates.io"

started=$SECONDS
env -u RUSTC_WORKSPACE_WRAPPER cargo build "${build[@]}" --profile quick --features pyo3/extension-module
echo "built in $((SECONDS - started)) s"

# As a wheel would be installed: what lies in the directory of sources is not changed.
rm -rf "$home/short"
mkdir "$home/short"
cp -r "$crate/python/perihelion" "$home/short/"
for library in "$home"/quick/lib_native.so "$home"/quick/lib_native.dylib; do
    if [ -e "$library" ]; then cp "$library" "$home/short/perihelion/_native.abi3.so"; fi
done

exec env -u TEST_DATABASE_URL PYTHONPATH="$home/short:$site" PYTHONDONTWRITEBYTECODE=1 "$python" -m pytest --quiet \
    -c "$crate/pyproject.toml" --rootdir "$crate" -p no:cacheprovider "$crate/tests" \
    --ignore "$crate/tests/test_conformance.py" --ignore "$crate/tests/test_copying.py" \
    -k "memory or (charges_once and sqlite) or (test_host and (described or taken or traceback))" "$@"
