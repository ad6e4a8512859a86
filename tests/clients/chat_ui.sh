#!/usr/bin/env bash
# Builds agent-chat-ui in its own directory, once, and drives it in Chromium against a server.
#
#   tests/clients/chat_ui.sh SOURCES
set -euo pipefail
[ $# = 1 ] || { echo "usage: tests/clients/chat_ui.sh SOURCES" >&2; exit 2; }
sources=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
export PERIHELION=${PERIHELION:-${CARGO_TARGET_DIR:-$PWD/target}/debug/perihelion} AGENT_CHAT_UI=$sources
command -v "${CHROMIUM:-chromium}" >/dev/null || { echo "chromium is missing: apt-get install chromium" >&2; exit 2; }
if [ ! -f "$sources/.next/BUILD_ID" ]; then
    export NEXT_TELEMETRY_DISABLED=1 NEXT_FONT_GOOGLE_MOCKED_RESPONSES=$PWD/tests/clients/chat_ui_fonts.cjs
    (cd "$sources" && npx --yes pnpm@10.5.1 install --frozen-lockfile && npx --yes pnpm@10.5.1 build)
fi
[ -d web/app/node_modules/playwright-core ] || (cd web/app && npm ci --no-audit --no-fund --silent)
PATH="$(dirname "$PERIHELION"):$PATH" node --test --test-concurrency=1 tests/clients/chat_ui.test.mjs
