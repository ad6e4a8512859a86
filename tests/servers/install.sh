#!/usr/bin/env bash
# Installs the MCP servers that tests/servers drives, at the versions that are known to work.
#
#   tests/servers/install.sh DIRECTORY
#
# npm packages get a directory each, Python packages a virtual environment each. What is there at the right version
# stays. PYTHON names another interpreter than python3. About 700 MB and a minute the first time.
set -euo pipefail

[ $# = 1 ] || {
    echo "usage: tests/servers/install.sh DIRECTORY" >&2
    exit 2
}
mkdir -p "$1"
place=$(cd "$1" && pwd)
python=${PYTHON:-python3}

needs() {
    command -v "$1" >/dev/null || {
        echo "$1 is missing: $2" >&2
        exit 1
    }
}
needs npm "Node 20 or newer with npm is needed (Debian: apt-get install npm)"
needs "$python" "Python 3.10 or newer with its venv module is needed (Debian: apt-get install python3-venv)"

# Whether a directory holds just these packages; the mark is written last, so one that was broken off does not count.
there() { [ "$(cat "$place/$1/installed" 2>/dev/null)" = "$2" ]; }

fresh() {
    echo "installing $2"
    rm -rf "${place:?}/$1"
    mkdir -p "$place/$1"
}

npm_server() {
    local name=$1 wanted=$2
    if there "$name" "$wanted"; then return; fi
    fresh "$name" "$wanted"
    # A browser is not downloaded: the test uses one that is installed.
    PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 \
        npm install --prefix "$place/$name" --no-audit --no-fund --loglevel=error "$wanted"
    echo "$wanted" >"$place/$name/installed"
}

python_server() {
    local name=$1
    shift
    if there "$name" "$*"; then return; fi
    fresh "$name" "$*"
    "$python" -m venv "$place/$name"
    "$place/$name/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
    echo "$*" >"$place/$name/installed"
}

npm_server everything @modelcontextprotocol/server-everything@2026.8.31
npm_server filesystem @modelcontextprotocol/server-filesystem@2026.8.31
npm_server memory @modelcontextprotocol/server-memory@2026.8.31
npm_server sequential-thinking @modelcontextprotocol/server-sequential-thinking@2026.8.31
# Archived, and its promise to only read is not kept: see tests/servers/adversary.rs.
npm_server postgres @modelcontextprotocol/server-postgres@0.6.2
npm_server playwright @playwright/mcp@0.0.83

python_server time mcp-server-time==2026.10.19 mcp==2.3.0
python_server git mcp-server-git==2026.10.19 mcp==2.3.0
# Knows nothing of the second generation of its library.
python_server sqlite mcp-server-sqlite==2025.4.25 mcp==1.30.0
python_server motherduck mcp-server-motherduck==1.1.0 mcp==2.3.0
python_server alchemy mcp-alchemy==2026.10.15.202659 mcp==2.3.0
