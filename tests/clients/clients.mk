# Real clients from the registries, unchanged, against a real server.

CLIENTS ?= $(or $(CARGO_TARGET_DIR),target)/clients

.PHONY: test-clients
test-clients: ## Install the clients of LangGraph and OpenAI from PyPI and npm, and drive a real server with them
	$(CARGO) build --bin perihelion
	@tests/clients/run.sh "$(CLIENTS)"
