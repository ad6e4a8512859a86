#!/usr/bin/env bash
# Runs a throw-away PostgreSQL for tests.
#
#   tests/postgres.sh run COMMAND…   starts a server, runs COMMAND with TEST_DATABASE_URL set, stops the server
#   tests/postgres.sh hold           starts a server, prints its URL, stops it when standard input closes;
#                                    the line "restart" there crashes it, starts it again and prints the URL
#
# The server listens on 127.0.0.1 at a free port with a password of its own, keeps its files in a fresh
# temporary directory and is gone afterwards, also when this script is killed. `run` does nothing of this
# where TEST_DATABASE_URL is already set. TEST_POSTGRES_AUTH names another method of authentication than md5: SCRAM hashes
# 4096 times for each connection, which takes a program without optimisation a tenth of a second. TEST_POSTGRES_BIN names
# the directory of the programs of a server that is not the machine's own, relative to TEST_POSTGRES_TREE.
set -euo pipefail

usage() {
    sed -n '2,13s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

find_binaries() {
    local directory
    for directory in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql*/bin; do
        if [ -x "$directory/initdb" ]; then echo "$directory"; fi
    done | sort -V | tail -n 1
}

binaries() {
    local found
    if [ -n "${TEST_POSTGRES_BIN:-}" ]; then
        found=$TEST_POSTGRES_TREE/$TEST_POSTGRES_BIN
    elif command -v initdb >/dev/null; then
        found=$(dirname "$(readlink -f "$(command -v initdb)")")
    else
        found=$(find_binaries)
    fi
    if [ -z "$found" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        mkdir -p /etc/postgresql-common
        [ -e /etc/postgresql-common/createcluster.conf ] ||
            echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
        { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql; } >&2
        found=$(find_binaries)
    fi
    if [ -z "$found" ]; then
        echo "no PostgreSQL here: install it (Debian: apt-get install postgresql) or set TEST_DATABASE_URL" >&2
        exit 1
    fi
    echo "$found"
}

# PostgreSQL refuses to run as root: as root, commands of the server run as an unprivileged user.
unprivileged() {
    if [ "$(id -u)" != 0 ]; then
        "$@"
    else
        setpriv --reuid="$owner" --regid="$(id -g "$owner")" --clear-groups "$@"
    fi
}

# Like `unprivileged`, but as this script's own child that the kernel stops (SIGQUIT: at once) when the script dies.
tied() {
    local tie=()
    if command -v setpriv >/dev/null; then tie=(setpriv --pdeathsig QUIT); fi
    if [ "$(id -u)" != 0 ]; then
        exec "${tie[@]}" "$@"
    else
        exec setpriv --reuid="$owner" --regid="$(id -g "$owner")" --clear-groups --pdeathsig QUIT "$@"
    fi
}

server=
home=
bin=
port=
owner=nobody
if id postgres >/dev/null 2>&1; then owner=postgres; fi

stop() {
    trap '' INT TERM HUP
    if [ -n "$server" ]; then
        kill -QUIT "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    if [ -n "$home" ]; then rm -rf "$home"; fi
}

start() {
    local password attempt
    bin=$(binaries)
    home=$(mktemp -d "${TMPDIR:-/tmp}/perihelion-postgres.XXXXXX")
    trap stop EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    echo "$password" >"$home/password"
    if [ "$(id -u)" = 0 ]; then
        chown -R "$owner" "$home"
        # A checkout under /root is nothing that an unprivileged user can enter.
        if [ -n "${TEST_POSTGRES_BIN:-}" ] && ! unprivileged test -x "$bin/initdb"; then
            cp -r "$TEST_POSTGRES_TREE" "$home/server"
            chown -R "$owner" "$home/server"
            bin=$home/server/$TEST_POSTGRES_BIN
        fi
    fi
    (
        cd "$home"
        unprivileged "$bin/initdb" -D "$home/data" -U postgres --encoding=UTF8 --locale=C --no-sync \
            --auth="${TEST_POSTGRES_AUTH:-md5}" --pwfile="$home/password" >"$home/initdb.log" 2>&1
    ) || {
        cat "$home/initdb.log" >&2
        exit 1
    }
    # A taken port makes the server exit at once; then another is tried.
    for attempt in 1 2 3 4 5 6 7 8 9 10; do
        port=$((20000 + (RANDOM * 32768 + RANDOM) % 12000))
        if launch "$port"; then
            url="postgres://postgres:$password@127.0.0.1:$port/postgres"
            return
        fi
    done
    give_up
}

# Starts the server at a port and waits until it is ready; fails where it exits instead.
launch() {
    local log waited=0
    # Nothing here is to outlive the machine, so nothing is synced; commits still survive a killed server.
    # Benchmarks need it otherwise: TEST_POSTGRES_SETTINGS replaces these.
    local settings
    read -ra settings <<<"${TEST_POSTGRES_SETTINGS--c fsync=off -c full_page_writes=off}"
    log=$(mktemp "$home/server-XXXXXX.log")
    (cd "$home" && tied "$bin/postgres" -D "$home/data" -p "$1" \
        -c listen_addresses=127.0.0.1 -c unix_socket_directories="$home" -c max_connections=200 \
        "${settings[@]}") <"/dev/null" >"$log" 2>&1 &
    server=$!
    while kill -0 "$server" 2>/dev/null; do
        # Its own log, not the port: a stranger listening there must not be taken for it.
        if grep -q "ready to accept connections" "$log"; then return 0; fi
        sleep 0.1
        waited=$((waited + 1))
        [ "$waited" -lt 600 ] || give_up
    done
    wait "$server" 2>/dev/null || true
    server=
    return 1
}

give_up() {
    echo "PostgreSQL did not start; its last words:" >&2
    tail -n 50 "$home"/server-*.log >&2
    exit 1
}

# What the machine's end would do to a server: no farewell, no checkpoint, recovery at the next start.
restart() {
    local attempt
    kill -QUIT "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    # The port may still be taken for a moment; a full disk may be freed.
    for attempt in 1 2 3 4 5 6 7 8 9 10; do
        if launch "$port"; then return; fi
        sleep 0.2
    done
    give_up
}

case "${1:-}" in
run)
    shift
    [ $# -gt 0 ] || usage
    if [ -n "${TEST_DATABASE_URL:-}" ]; then exec "$@"; fi
    start
    status=0
    TEST_DATABASE_URL=$url "$@" || status=$?
    exit "$status"
    ;;
hold)
    start
    echo "$url"
    while read -r word; do
        if [ "$word" = restart ]; then
            restart
            echo "$url"
        fi
    done
    ;;
*) usage ;;
esac
