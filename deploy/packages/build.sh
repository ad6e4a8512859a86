#!/usr/bin/env bash
# Builds the program for glibc 2.28 and later, by zig as linker (both from PyPI), then makes every package of it.
#
# PACKAGES_PROGRAM names a program that was built already; PACKAGES_ONLY, packages to make (wheel,npm,deb,archive,image).
set -euo pipefail
cd "$(dirname "$0")/../.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
platform=$(uname -m)-unknown-linux-gnu
program=${PACKAGES_PROGRAM:-}
if [ -z "$program" ]; then
    tools=$target/package-tools
    test -x "$tools/bin/cargo-zigbuild" || {
        python3 -m venv "$tools"
        "$tools/bin/pip" install --quiet cargo-zigbuild==0.24.1 ziglang==0.17.1
    }
    BUILD_COMMIT=$(git rev-parse --short HEAD) PATH=$tools/bin:$PATH cargo zigbuild --locked --release --bin perihelion --target "$platform.2.28"
    program=$target/$platform/release/perihelion
fi
python3 deploy/packages/make.py --program "$program" --out "$target/packages" --only "${PACKAGES_ONLY:-wheel,npm,deb,archive,image}"
