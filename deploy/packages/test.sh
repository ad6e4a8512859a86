#!/usr/bin/env bash
# Installs each package of target/packages in a clean environment, uses it there, and uninstalls it.
#
# A wheel in a virtual environment, npm packages below a prefix, the Debian package and the image in roots of their own
# (which needs root and Debian's packages; skipped aloud elsewhere, an error with CI=true).
set -euo pipefail
cd "$(dirname "$0")/../.."
packages=$(realpath -m "${CARGO_TARGET_DIR:-target}")/packages
ls "$packages"/*.whl >/dev/null 2>&1 || { echo "there are no packages in $packages: run \`make packages\` first" >&2; exit 2; }
(cd "$packages" && sha256sum --quiet --check SHA256SUMS)
work=$(mktemp -d)
chmod 755 "$work"
roots=()
clean() {
    for root in "${roots[@]}"; do umount -l "$root/dev" "$root/proc" 2>/dev/null || true; done
    # What is still mounted below it is not this one's to delete.
    rm -rf --one-file-system "$work"
}
trap clean EXIT
export HOME=$work/home XDG_DATA_HOME=$work/home/.local/share
unset OPENAI_API_KEY OPENAI_BASE_URL OPENAI_MODEL DATABASE_URL

# Presses Ctrl-C in a terminal in which a program is started by npm's launcher, and fails unless it gets one signal: it takes a
# second one as an order to end at once. `interrupted_once LAUNCHER`.
interrupted_once() {
    local program
    program=$work/interrupted/node_modules/perihelion-linux-$(node -p process.arch)/bin/perihelion
    mkdir -p "$(dirname "$program")"
    cp "$1" "$work/interrupted/launcher.js"
    cat >"$program" <<'PYTHON'
#!/usr/bin/env python3
import signal, time
signals = []
signal.signal(signal.SIGINT, lambda *_: signals.append(time.monotonic()))
print("ready", flush=True)
while not signals or time.monotonic() < signals[0] + 1:
    time.sleep(0.1)
raise SystemExit(len(signals) - 1)
PYTHON
    chmod +x "$program"
    python3 - "$work/interrupted/launcher.js" <<'PYTHON'
import os, pty, sys
child, terminal = pty.fork()
if child == 0:
    os.execvp("node", ["node", sys.argv[1]])
shown = b""
while b"ready" not in shown:
    shown += os.read(terminal, 4096)
os.write(terminal, b"\x03")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
PYTHON
}

heading() { printf '\n== %s\n\n' "$*"; }

# Answers of the demo name this zone.
answer=Africa/Casablanca
question='Between 2010 and 2025, in which time zones did the clocks change most often, how many times, and why?'

# Uses an installed program: `use COMMAND...` is what starts it, in an empty working directory.
use() {
    "$@" --version
    "$@" demo </dev/null >"$work/demo.log" 2>&1 || { cat "$work/demo.log" >&2; return 1; }
    grep --quiet "$answer" "$work/demo.log"
    # No model is configured here, which is a failed check.
    "$@" doctor --json </dev/null >"$work/doctor.json" || true
    python3 - "$work/doctor.json" <<'PYTHON'
import json, sys
for part in json.load(open(sys.argv[1]))["parts"]:
    print(f"{part['name']}: {part['path'] or 'not found'}")
PYTHON
    "$@" serve --demo --addr 127.0.0.1:0 >"$work/serve.log" 2>&1 </dev/null &
    local server=$! address=
    for _ in $(seq 300); do
        address=$(grep -o 'http://127\.0\.0\.1:[0-9]*' "$work/serve.log" | head -1) && break
        sleep 0.1
    done
    curl --silent --show-error --fail --retry 20 --retry-connrefused "$address/readyz" >/dev/null
    curl --silent --show-error --fail --header 'content-type: application/json' --output "$work/run.json" \
        --data "{\"assistant_id\": \"swarm\", \"input\": {\"question\": \"$question\"}}" "$address/runs/wait"
    grep --quiet "$answer" "$work/run.json" || { cat "$work/run.json" "$work/serve.log" >&2; return 1; }
    kill -TERM "$server"
    wait "$server" || true
    echo "the demo and a run of the service gave an answer"
}

# Lists what is installed below a directory; what Python compiles, npm's notes and the data of the program do not count.
files() {
    local aside='__pycache__\|/\.package-lock\.json$\|/\.local/share/perihelion/\|/var/l[io][bg]/\(dpkg\|perihelion\)\|/dpkg\.log'
    find "$1" -xdev \( -type f -o -type l \) | sed "\\#$aside#d" | sort
}

# Fails if uninstalling left what was not there before: `nothing_left PLACE`, after `files PLACE >"$work/before"`.
nothing_left() {
    files "$1" | comm -13 "$work/before" - >"$work/left"
    [ ! -s "$work/left" ] || { echo "uninstalling left:" >&2; cat "$work/left" >&2; return 1; }
}

heading "The wheel, in a virtual environment"
python3 -m venv "$work/venv"
files "$work/venv" >"$work/before"
"$work/venv/bin/pip" install --quiet --no-index "$packages"/perihelion_command-*.whl
mkdir "$work/wheel" && (cd "$work/wheel" && use "$work/venv/bin/perihelion")
"$work/venv/bin/pip" uninstall --quiet --yes perihelion-command
nothing_left "$work/venv"

heading "The wheel for LangGraph, which brings the command"
python3 -m venv "$work/agents"
"$work/agents/bin/pip" install --quiet --find-links "$packages" "$packages"/perihelion_agents-*.whl
(cd "$work/wheel" && "$work/agents/bin/perihelion" --version && "$work/agents/bin/python" - <<'PYTHON')
from perihelion import PerihelionSaver
with PerihelionSaver.from_conn_string("agents.db") as saver:
    print("a checkpointer on", saver.__class__.__name__, len(list(saver.list(None))), "checkpoints")
PYTHON
"$work/agents/bin/pip" uninstall --quiet --yes perihelion-agents perihelion-command
! ls "$work"/agents/bin/perihelion "$work"/agents/lib/python*/site-packages/perihelion* 2>/dev/null

if command -v npm >/dev/null; then
    heading "The npm packages, below a prefix of their own"
    export npm_config_prefix=$work/npm npm_config_cache=$work/npm-cache
    mkdir "$work/npm"
    files "$work/npm" >"$work/before"
    npm install --silent --global --offline --omit=optional "$packages"/perihelion-linux-*.tgz
    npm install --silent --global --offline --omit=optional "$packages"/perihelion-[0-9]*.tgz
    mkdir "$work/node" && (cd "$work/node" && NODE_PATH=$work/npm/lib/node_modules use "$work/npm/bin/perihelion")
    interrupted_once "$work/npm/lib/node_modules/perihelion/bin/perihelion.js"
    npm uninstall --silent --global perihelion "$(basename "$(ls -d "$work"/npm/lib/node_modules/perihelion-linux-*)")"
    nothing_left "$work/npm"
else
    echo "npm is not installed: its packages are not tested" >&2
    [ "${CI:-}" != true ] || exit 1
fi

heading "The archive"
mkdir "$work/archive" && tar -xzf "$packages"/perihelion-*-linux-*.tar.gz -C "$work/archive" --strip-components=1
mkdir "$work/unpacked" && (cd "$work/unpacked" && use "$work/archive/perihelion")
man --warnings -l "$work/archive/man/perihelion.1" >/dev/null 2>"$work/man.log" || true
test ! -s "$work/man.log" || { cat "$work/man.log" >&2; exit 1; }

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "neither root nor Debian: the Debian package and the image are not tested" >&2
    [ "${CI:-}" != true ] || exit 1
    exit 0
fi

heading "The image's files, as a root of their own"
root=$work/image
mkdir "$root" "$work/layout"
tar -xf "$packages"/perihelion-*.oci.tar -C "$work/layout"
python3 - "$work/layout" <<'PYTHON' | while read -r layer; do tar -xzf "$layer" -C "$root"; done
import json, sys
for layer in json.load(open(f"{sys.argv[1]}/manifest.json"))[0]["Layers"]:
    print(f"{sys.argv[1]}/{layer}")
PYTHON
roots+=("$root")
mount --bind /dev "$root/dev"
mount -t proc proc "$root/proc"
# The image has no `env`: the environment is made outside.
chroot=$(command -v chroot)
within() { env -i PATH=/usr/local/bin:/usr/bin HOME=/home/perihelion XDG_DATA_HOME=/var/lib "$chroot" --userspec=10001:10001 "$1" "${@:2}"; }
use within "$root" perihelion

heading "The Debian package, in a root made of Debian's packages"
root=$work/debian
mkdir -p "$root"/{dev,proc,tmp}
base=(libc6 libgcc-s1 ca-certificates)
mkdir -p "$work"/{downloads,apt/lists/partial,apt/archives/partial}
apt=(apt-get -q -o APT::Sandbox::User=root -o Dir::State="$work/apt" -o Dir::State::status=/dev/null -o Dir::Cache="$work/apt")
(cd "$work/downloads" && "${apt[@]}" update >/dev/null && "${apt[@]}" download "${base[@]}" >/dev/null)
for package in "$work"/downloads/*.deb; do dpkg-deb -x "$package" "$root"; done
# What `update-ca-certificates` does when the package is installed.
find "$root/usr/share/ca-certificates" -name '*.crt' -exec cat {} + >"$root/etc/ssl/certs/ca-certificates.crt"
mkdir -p "$root"/var/lib/dpkg/{info,updates,triggers} "$root/root"
touch "$root"/var/lib/dpkg/{status,available}
roots+=("$root")
mount --bind /dev "$root/dev"
mount -t proc proc "$root/proc"
on_debian() { env -i PATH=/usr/bin HOME=/root TERM=dumb "$chroot" "$root" "$@"; }
# The libraries were unpacked, not installed, so the package's requirements look unmet.
files "$root" >"$work/before"
dpkg --root="$root" --force-depends --install "$packages"/perihelion_*.deb 2>"$work/dpkg.log" || { cat "$work/dpkg.log" >&2; exit 1; }
use on_debian perihelion
dpkg --root="$root" --force-depends --purge perihelion
nothing_left "$root"
echo "every package was installed, used and uninstalled"
