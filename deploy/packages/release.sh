#!/usr/bin/env bash
# Cuts a release: version, changelog, commit, tag, packages and notes. Without PUBLISH=yes it only shows what it would do.
#
# VERSION names the release (1.2.3). What is uploaded afterwards is printed, not run: it needs a person's credentials.
set -euo pipefail
cd "$(dirname "$0")/../.."
version=${VERSION:-}
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || { echo "name the release: make release VERSION=1.2.3" >&2; exit 2; }
today=$(date -u +%F)
notes=$(awk '/^## \[Unreleased\]/ { on = 1; next } /^## \[/ { on = 0 } on' CHANGELOG.md)
[ -n "${notes//[[:space:]]/}" ] || { echo "CHANGELOG.md has nothing under [Unreleased]: there is nothing to release" >&2; exit 1; }
git rev-parse --quiet --verify "refs/tags/v$version" >/dev/null && { echo "the tag v$version exists already" >&2; exit 1; }

ls tests/golden/releases/"$version".* >/dev/null 2>&1 && { echo "tests/golden/releases has databases of $version already" >&2; exit 1; }

if [ "${PUBLISH:-}" != yes ]; then
    printf 'Release %s of %s would change Cargo.toml, Cargo.lock, crates/python, CHANGELOG.md and deploy/helm/Chart.yaml,\n' "$version" "$today"
    printf 'commit, build and test the packages, tag v%s, and commit databases that the program wrote with the new baseline of the API:\n' "$version"
    printf '  tests/golden/releases/%s.%s.gz\n' "$version" sqlite "$version" postgres
    printf 'Notes:\n%s\n\nRun it with PUBLISH=yes.\n' "$notes"
    exit
fi
[ -z "$(git status --porcelain)" ] || { echo "commit or stash your changes first" >&2; exit 1; }

sed -i "/^\[workspace.package\]/,/^\[/ s/^version = .*/version = \"$version\"/" Cargo.toml
sed -i "/^\[package\]/,/^\[/ s/^version = .*/version = \"$version\"/" crates/python/Cargo.toml
sed -i "s/^version: .*/version: $version/; s/^appVersion: .*/appVersion: \"$version\"/" deploy/helm/Chart.yaml
sed -i "s/^## \[Unreleased\]$/## [Unreleased]\n\n## [$version] - $today/" CHANGELOG.md
cargo update --workspace --quiet
cargo update --workspace --quiet --manifest-path crates/python/Cargo.toml
git commit --quiet --all --message "Release $version"
trap 'echo "the release failed: undo its commit with \`git reset --keep HEAD^\`, and start it again" >&2' ERR
deploy/packages/build.sh
deploy/packages/test.sh
# The notes are the message: headings begin as comments do.
git tag --annotate --cleanup=whitespace "v$version" --message "Perihelion $version" --message "$notes"
trap - ERR
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")/packages
printf '%s\n' "$notes" >"$target/NOTES.md"
# Later releases open what this one wrote; the program is that of the archive.
program=$(mktemp -d)
trap 'rm -rf "$program"' EXIT
tar -xzf "$target"/perihelion-"$version"-linux-*.tar.gz -C "$program" --strip-components=1
tests/postgres.sh run tests/releases/write.sh "$program/perihelion" "$version"
# The public API of the engine is compared with this release from now on.
git rev-parse "v$version^{commit}" >crates/engine/semver-baseline
git add tests/golden/releases crates/engine/semver-baseline
git commit --quiet --message "Keep databases and the engine's API of release $version"
cat <<TEXT

Release $version is committed, tagged and packaged in $target. To publish it:

  git push origin main v$version
  twine upload $target/perihelion_*.whl
  npm publish $target/perihelion-linux-*.tgz && npm publish $target/perihelion-$version.tgz
  skopeo copy oci-archive:$(echo "$target"/*.oci.tar) docker://REGISTRY/perihelion:$version
TEXT
