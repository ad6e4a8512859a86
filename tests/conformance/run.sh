#!/usr/bin/env bash
# Runs the official MCP conformance suite: our client layer against its servers, a bundled server against its clients.
#
# Needs npm for the suite and for the Node that it wants; both go into the target directory. Arguments narrow
# the run to one side: `tests/conformance/run.sh client`. Results stand in the target directory, a table is printed.
set -euo pipefail
cd "$(dirname "$0")/../.."

SUITE=@modelcontextprotocol/conformance@0.2.0-alpha.12
NODE=node@24
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target/conformance"
place=$(cd "$target/conformance" && pwd)
sides=${*:-client server}
expected=tests/conformance/expected-failures.yml

if [ ! -x "$place/node_modules/node/bin/node" ] || [ ! -e "$place/node_modules/.bin/conformance" ]; then
    npm install --prefix "$place" --no-audit --no-fund --loglevel=error "$SUITE" "$NODE"
fi
cargo build --locked --bin perihelion --example conformance_client
built=$(cd "$target/debug" && pwd)
suite() { "$place/node_modules/node/bin/node" "$place/node_modules/.bin/conformance" "$@"; }

failed=0
for side in $sides; do
    for revision in 2025-11-25 2026-07-28; do
        out=$place/$side-$revision
        rm -rf "$out"
        case $side in
        client)
            suite client --command "$built/examples/conformance_client" --requirements "$revision" \
                --expected-failures "$expected" --output-dir "$out" >"$out.log" 2>&1 || failed=1
            ;;
        server)
            notes=$(mktemp -d)
            "$built/perihelion" mcp --http 127.0.0.1:0 notes --file "$notes/notes.jsonl" 2>"$notes/said" &
            server=$!
            until url=$(grep -o 'http://[^ ]*' "$notes/said"); do kill -0 $server; sleep 0.1; done
            suite server --url "$url" --requirements "$revision" \
                --expected-failures "$expected" --output-dir "$out" >"$out.log" 2>&1 || failed=1
            kill -INT $server
            wait $server || failed=1
            rm -rf "$notes"
            ;;
        *)
            echo "unknown side: $side (client or server)" >&2
            exit 2
            ;;
        esac
        echo "== $side, $revision ($out.log)"
        sed -n '/SUMMARY/,$p' "$out.log"
    done
done
exit $failed
