#!/usr/bin/env bash
# Runs the official MCP conformance suite at both revisions that are spoken, and prints what passed.
#
#   client    the pool that agents use, against the suite's servers
#   server    the HTTP layer of the bundled servers, under a fixture with all that the suite calls by name
#   bundled   each bundled server as people have it, with the scenarios that apply to any server
#   service   /mcp of `perihelion serve --demo`, with the same scenarios
#
# Needs npm for the suite and for the Node that it wants; both go into the target directory, at these versions.
# Arguments narrow the run: `tests/conformance/run.sh client`. What is known to fail, and why, stands in
# expected-failures.yml, bundled-failures.yml and service-failures.yml; any other failure fails the run, and so does one
# that is fixed.
set -euo pipefail
cd "$(dirname "$0")/../.."

SUITE=@modelcontextprotocol/conformance@0.2.0-alpha.12
NODE=node@24.21.0
REVISIONS="2025-11-25 2026-07-28"
BUNDLED="notes files sql documents python api web mail"
ANY_SERVER="server-initialize ping tools-list server-sse-multiple-streams dns-rebinding-protection
    server-session-lifecycle server-stateless input-required-result-unsupported-methods http-header-validation"

sides=${*:-client server bundled service}
for side in $sides; do
    case $side in
    client | server | bundled | service) ;;
    *)
        echo "unknown side: $side (client, server, bundled or service)" >&2
        exit 2
        ;;
    esac
done

target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target/conformance"
place=$(cd "$target/conformance" && pwd)
here=tests/conformance

# The mark is written last: an installation that was broken off is made again.
if [ "$(cat "$place/installed" 2>/dev/null)" != "$SUITE $NODE" ]; then
    echo "installing $SUITE and $NODE into $place"
    npm install --prefix "$place" --no-audit --no-fund --loglevel=error "$SUITE" "$NODE"
    echo "$SUITE $NODE" >"$place/installed"
fi
suite() { "$place/node_modules/node/bin/node" "$place/node_modules/.bin/conformance" "$@"; }

# With the features that a build of everything has, so that nothing is built twice.
cargo build --locked --workspace --bin perihelion --example conformance_client --example conformance_server
built=$(cd "$target/debug" && pwd)

scratch=$(mktemp -d)
server=
mailbox=
dovecot=
stop() {
    if [ -n "$server" ]; then
        kill -INT "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || status=1
        server=
    fi
}
trap 'stop; [ -z "$dovecot" ] || { kill "$dovecot"; wait "$dovecot"; } 2>/dev/null; rm -rf "$scratch"' EXIT

# Starts a server in the background and sets `url` to the address that it names.
serve() {
    : >"$scratch/said"
    "$@" 2>"$scratch/said" &
    server=$!
    until url=$(grep -o 'http://[^ ]*' "$scratch/said"); do
        kill -0 "$server" 2>/dev/null || {
            echo "$1 did not start:" >&2
            cat "$scratch/said" >&2
            exit 1
        }
        sleep 0.1
    done
}

# Prints the scenarios that a revision requires of a side.
required() {
    awk -v side="$2:" '/^[a-z_]+:/ { inside = $1 == side } inside && $1 == "-" { print $2 }' \
        "$place/node_modules/@modelcontextprotocol/conformance/requirements/$1.yaml"
}

status=0
table="$scratch/table"
echo "side revision scenarios passed as-expected UNEXPECTED" >"$table"

# Adds a line to the table: side, revision, scenarios, passed, expected to fail, unexpected.
note() {
    echo "$1 $2 $3 $4 $5 $6" >>"$table"
    [ "$6" = 0 ] || status=1
}

# Runs all that a revision requires of a side.
whole() {
    local side=$1 revision=$2 out=$place/$1-$2 ended=0 passed all expected unexpected
    shift 2
    rm -rf "$out"
    suite "$side" "$@" --requirements "$revision" --expected-failures "$here/expected-failures.yml" \
        --output-dir "$out" >"$out.log" 2>&1 || ended=$?
    all=$(required "$revision" "$side" | wc -l)
    passed=$(required "$revision" "$side" | while read -r name; do grep -c "^✓ $name:" "$out.log" || true; done |
        awk '{ n += $1 } END { print n + 0 }')
    expected=$(sed -n '/Expected failures/,/^$/p' "$out.log" | grep -c '^ *~' || true)
    # The suite judges. One that passes though it is listed is as unexpected as one that fails.
    unexpected=0
    if [ "$ended" != 0 ]; then
        unexpected=$((all - passed - expected))
        [ "$unexpected" -gt 0 ] || unexpected=1
        sed -n '/SUMMARY/,$p' "$out.log"
    fi
    note "$side" "$revision" "$all" "$passed" "$expected" "$unexpected"
}

# Runs the scenarios that apply to any server; one that the revision does not know is skipped by the suite. What is known
# to fail stands in the file of that name.
selected() {
    local bundled=$1 revision=$2 known=$3 name log all=0 passed=0 expected=0 failed=0
    for name in $ANY_SERVER; do
        log=$place/$bundled-$revision-$name.log
        if ! suite server --url "$url" --scenario "$name" --spec-version "$revision" \
            --expected-failures "$here/$known-failures.yml" --output-dir "$place/$bundled-$revision" >"$log" 2>&1; then
            failed=$((failed + 1))
            sed -n '/^Checks:/,$p' "$log"
        elif grep -q '^SKIPPED' "$log"; then
            continue
        elif grep -q '^ *~' "$log"; then
            expected=$((expected + 1))
        else
            passed=$((passed + 1))
        fi
        all=$((all + 1))
    done
    note "$bundled" "$revision" "$all" "$passed" "$expected" "$failed"
}

# Starts a Dovecot that ends with this script, and sets `mailbox` to its port.
mailbox() {
    [ -z "$mailbox" ] || return 0
    { [ -x /usr/sbin/dovecot ] && [ "$(id -u)" = 0 ]; } || return 1
    local home=$scratch/dovecot
    mailbox=$(shuf -i 20000-30000 -n 1)
    mkdir -p "$home/mail"
    chown nobody "$home/mail"
    chmod 755 "$scratch"
    cat >"$home/dovecot.conf" <<-END
		protocols = imap
		base_dir = $home/run
		listen = 127.0.0.1
		log_path = $home/log
		ssl = no
		disable_plaintext_auth = no
		mail_location = maildir:$home/mail/%u
		first_valid_uid = 1
		passdb {
		 driver = static
		 args = password=secret-pass
		}
		userdb {
		 driver = static
		 args = uid=nobody gid=nogroup home=$home/mail/%u
		}
		service imap-login {
		 inet_listener imap {
		  port = $mailbox
		 }
		 inet_listener imaps {
		  port = 0
		 }
		}
	END
    /usr/sbin/dovecot -F -c "$home/dovecot.conf" &
    dovecot=$!
    until (exec 3<>"/dev/tcp/127.0.0.1/$mailbox") 2>/dev/null; do
        kill -0 "$dovecot" 2>/dev/null || return 1
        sleep 0.1
    done
}

# Starts a bundled server on what it needs; fails where that cannot be had here, and says so.
bundled() {
    local start="serve $built/perihelion mcp --http 127.0.0.1:0"
    case $1 in
    notes) $start notes --file "$scratch/notes.jsonl" ;;
    files) $start files --root "$PWD" ;;
    sql)
        command -v sqlite3 >/dev/null || { echo "sql: not tested, there is no sqlite3 to make a database with" >&2; return 1; }
        sqlite3 "$scratch/some.db" 'create table if not exists t (n integer)'
        $start sql --database "$scratch/some.db"
        ;;
    documents) $start documents --database "sqlite:$scratch/documents.db" ;;
    python) command -v bwrap >/dev/null || { echo "python: not tested, there is no bubblewrap" >&2; return 1; }
        $start python ;;
    api)
        printf 'base_url: http://127.0.0.1:9/\nendpoints:\n  - method: GET\n    path: /things/:id\n    description: One thing\n' >"$scratch/api.yaml"
        $start api --spec "$scratch/api.yaml"
        ;;
    web) $start web ;;
    mail)
        # It logs in before it serves.
        if ! mailbox; then
            echo "mail: not tested, there is no Dovecot or no right to start it" >&2
            return 1
        fi
        serve env PERIHELION_MAIL_PASSWORD=secret-pass "$built/perihelion" mcp --http 127.0.0.1:0 mail \
            --imap "127.0.0.1:$mailbox" --smtp 127.0.0.1:9 --security plain --user bo --from bo@b.test
        ;;
    esac
}

for side in $sides; do
    for revision in $REVISIONS; do
        case $side in
        client) whole client "$revision" --command "$built/examples/conformance_client" ;;
        server)
            serve "$built/examples/conformance_server"
            whole server "$revision" --url "$url"
            ;;
        bundled)
            for bundled in $BUNDLED; do
                rm -rf "${place:?}/$bundled-$revision"
                if bundled "$bundled"; then
                    selected "$bundled" "$revision" bundled
                    stop
                fi
            done
            ;;
        service)
            rm -rf "${place:?}/service-$revision"
            serve env "DATABASE_URL=sqlite:$scratch/serve.db" "$built/perihelion" serve --demo --addr 127.0.0.1:0
            url=$url/mcp
            # Of sessions the older revision alone asks.
            case $revision in 2025-*) known=service ;; *) known=bundled ;; esac
            selected service "$revision" "$known"
            ;;
        esac
        stop
    done
done

echo
column -t "$table" 2>/dev/null || cat "$table"
echo "what each said: $place/*.log"
exit "$status"
