"""What every package says about Perihelion: version, platform, licences, and the files it brings."""

import json
import os
import pathlib
import platform
import re
import subprocess
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUMMARY = "A runtime for long-running, supervised agent graphs"
LICENCE = "Apache-2.0 OR MIT"
# The oldest glibc that the program runs on; `build.sh` links for it.
GLIBC = "2.28"
MACHINE = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}[platform.machine().lower()]
# The same machine in the words of Debian, npm and OCI.
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}[MACHINE]
NODE = {"x86_64": "x64", "aarch64": "arm64"}[MACHINE]


def version():
    """Returns the version that Cargo.toml states for all crates."""
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def timestamp():
    """Returns the time of the commit in seconds, so that the same commit gives the same packages."""
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    return int(run("git", "log", "-1", "--format=%ct").strip())


def run(*command, **options):
    """Runs a command in the project's root and returns what it printed."""
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def dependencies(manifest="Cargo.toml", package="perihelion"):
    """Returns cargo's description of each package that is compiled into the program, ours included, with the ids that it `needs`."""
    target = f"{MACHINE}-unknown-linux-gnu"
    options = ["--locked", "--manifest-path", manifest]
    metadata = json.loads(run("cargo", "metadata", "--format-version=1", "--filter-platform", target, *options))
    needs = {node["id"]: [one["pkg"] for one in node["deps"] if any(kind["kind"] != "dev" for kind in one["dep_kinds"])]
             for node in metadata["resolve"]["nodes"]}
    listed = run("cargo", "tree", *options, "-p", package, "-e", "normal,build", "--target", target, "--prefix", "none", "-f", "{p}")
    names = {tuple(re.match(r"(\S+) v(\S+)", line).groups()) for line in listed.splitlines() if line}
    found = [package | {"needs": needs[package["id"]]} for package in metadata["packages"] if (package["name"], package["version"]) in names]
    return sorted(found, key=lambda package: (package["name"], package["version"]))


def page():
    """Returns the npm packages that the web UI is bundled from, with their licences."""
    return json.loads((ROOT / "web/licenses.json").read_text())


def completions(program, directory):
    """Writes the completions that the program prints for each shell."""
    for shell in ["bash", "zsh", "fish"]:
        text = subprocess.run([program, "completions", shell], check=True, stdout=subprocess.PIPE).stdout
        path = directory / "completions" / {"bash": "perihelion", "zsh": "_perihelion", "fish": "perihelion.fish"}[shell]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
