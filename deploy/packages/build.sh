#!/usr/bin/env bash
# Builds the program for glibc 2.28 and later, by zig as linker (both from PyPI), then makes every package of it.
#
# PACKAGES_PROGRAM names a program that was built already; PACKAGES_ONLY, packages to make (wheel,npm,deb,archive,image).
set -euo pipefail
cd "$(dirname "$0")/../.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
platform=$(uname -m)-unknown-linux-gnu
program=${PACKAGES_PROGRAM:-}
only=${PACKAGES_ONLY:-wheel,npm,deb,archive,image}
tools=$target/package-tools
test -x "$tools/bin/maturin" || {
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet cargo-zigbuild==0.24.1 maturin==1.16.0 ziglang==0.17.1
}
if [ -z "$program" ]; then
    BUILD_COMMIT=$(git rev-parse --short HEAD) PATH=$tools/bin:$PATH cargo zigbuild --locked --release --bin perihelion --target "$platform.2.28"
    program=$target/$platform/release/perihelion
fi
agents=()
case ",$only," in *,wheel,*)
    rm -rf "$target/agents-wheel"
    PATH=$tools/bin:$PATH CARGO_TARGET_DIR=$target/agents maturin build --quiet --locked --release --zig --compatibility manylinux_2_28 \
        --manifest-path crates/python/Cargo.toml --out "$target/agents-wheel"
    agents=(--agents "$target"/agents-wheel/*.whl)
    ;;
esac
python3 deploy/packages/make.py --program "$program" --out "$target/packages" --only "$only" "${agents[@]}"
