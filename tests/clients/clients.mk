# Real clients from the registries, unchanged, against a real server.

CLIENTS ?= $(or $(CARGO_TARGET_DIR),target)/clients

.PHONY: test-clients
test-clients: ## Install the clients of LangGraph and OpenAI from PyPI and npm, and drive a real server with them
	$(CARGO) build --bin perihelion
	@tests/clients/run.sh "$(CLIENTS)"

.PHONY: test-openapi
test-openapi: ## Install schemathesis from PyPI, and hold a real server to its own description; EXAMPLES=50 per operation
	$(CARGO) build --bin perihelion
	@tests/clients/openapi.sh "$(CLIENTS)"

STREAM_KILLS ?= 100

.PHONY: torture-streams
torture-streams: ## Kill servers and cut connections under live streams: no gap, no duplicate; STREAM_KILLS=1000
	$(CARGO) build --bin perihelion
	@set -e; export PERIHELION="$${PERIHELION:-$(or $(CARGO_TARGET_DIR),target)/debug/perihelion}"; \
		python3 tests/clients/stream_torture.py sqlite $(STREAM_KILLS); \
		if [ -n "$$TEST_DATABASE_URL" ]; then \
			python3 tests/clients/on_postgres.py "$$TEST_DATABASE_URL" tests/clients/stream_torture.py $(STREAM_KILLS); \
		fi
