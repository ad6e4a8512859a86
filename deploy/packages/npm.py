"""Two npm packages: `perihelion`, which finds the program, and the program for this platform, which is optional."""

import json

import about
import archives

PLATFORM = f"perihelion-linux-{about.NODE}"
# Starts the program of the platform's package, passes signals on, and ends as it ends. A terminal interrupts both itself.
LAUNCHER = """#!/usr/bin/env node
"use strict";
const { spawn } = require("node:child_process");
const name = `perihelion-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/perihelion`);
} catch {
  console.error(`perihelion: the package ${name} is not installed: this platform is not supported, or optional packages were left out (npm install --include=optional)`);
  process.exit(1);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => { if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal); });
child.on("error", (error) => { console.error(`perihelion: ${error.message}`); process.exit(1); });
child.on("exit", (code, signal) => { process.exitCode = code ?? 128 + require("node:os").constants.signals[signal]; });
"""


def package(directory, description, files):
    entries = {"package/package.json": (0o644, (json.dumps(description, indent=2) + "\n").encode())}
    entries |= {f"package/{path}": entry for path, entry in files.items()}
    path = directory / f"{description['name']}-{description['version']}.tgz"
    path.write_bytes(archives.tar(entries))
    return path


def build(directory, program, licences):
    """Writes both packages into a directory and returns their paths."""
    version = about.version()
    common = {"version": version, "description": about.SUMMARY, "license": about.LICENCE}
    texts = {name: (0o644, text.encode()) for name, text in licences.items()}
    readme = {"README.md": (0o644, (about.ROOT / "README.md").read_bytes())}
    binary = {**common, "name": PLATFORM, "os": ["linux"], "cpu": [about.NODE], "libc": ["glibc"]}
    launcher = {**common, "name": "perihelion", "bin": {"perihelion": "bin/perihelion.js"}, "engines": {"node": ">=18"},
                "optionalDependencies": {PLATFORM: version}}
    return [
        package(directory, binary, {"bin/perihelion": (0o755, program.read_bytes()), **texts}),
        package(directory, launcher, {"bin/perihelion.js": (0o755, LAUNCHER.encode()), **readme, **texts}),
    ]
