# The page. What `cargo build` embeds is web/dist, which is committed; only changing or testing it needs Node.

PAGE_DIST := $(abspath $(or $(CARGO_TARGET_DIR),target)/page-dist)

.PHONY: page test-page page-pictures measure-page

page: ## Build web/dist from web/app (needs Node); the program embeds it
	cd web/app && npm ci --no-audit --no-fund && npx tsc --noEmit && node build.mjs && node licenses.mjs

test-page: ## Compare web/dist with its sources, then drive the page in Chromium (Debian's, installed as root) against a real server
	@command -v $${CHROMIUM:-chromium} >/dev/null || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; }
	cd web/app && npm ci --no-audit --no-fund && npx tsc --noEmit && node build.mjs "$(PAGE_DIST)" && \
		node licenses.mjs "$(PAGE_DIST).json"
	@diff -r web/dist "$(PAGE_DIST)" && diff web/licenses.json "$(PAGE_DIST).json" || { echo 'web/dist is not what web/app builds: run make page, and commit web/' >&2; exit 1; }
	cd tests/page/provider && npm ci --no-audit --no-fund
	$(CARGO) build --workspace --bin perihelion --example order --example research --example chat
	node --test --test-concurrency=1 tests/page/*.test.mjs

page-pictures: ## Take pictures of every view at three widths in both themes into docs/images/page
	cd web/app && npm ci --no-audit --no-fund
	$(CARGO) build --workspace --bin perihelion --example order
	node tests/page/pictures.mjs docs/images/page

measure-page: ## Print figures of the page and whether each meets its bound: size, first view, long threads and traces, Lighthouse (from npm)
	cd web/app && npm ci --no-audit --no-fund
	$(CARGO) build --workspace --bin perihelion
	node tests/page/measures.mjs
