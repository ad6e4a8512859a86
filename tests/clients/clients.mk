# Real clients from the registries, unchanged, against a real server.

CLIENTS ?= $(or $(CARGO_TARGET_DIR),target)/clients

.PHONY: test-clients
test-clients: ## Install the clients of LangGraph and OpenAI from PyPI and npm, and drive a real server with them; AGENT_CHAT_UI=… as for test-chat-ui
	$(CARGO) build --bin perihelion --example order --example research --example chat
	@tests/clients/run.sh "$(CLIENTS)"
	@if [ -n "$(AGENT_CHAT_UI)" ]; then tests/clients/chat_ui.sh "$(AGENT_CHAT_UI)"; \
		else echo 'agent-chat-ui was not driven: AGENT_CHAT_UI=DIRECTORY names its sources'; fi

# langchain-ai/agent-chat-ui and branch 1.0-dev of a2aproject/a2a-tck, in directories outside this one.
AGENT_CHAT_UI ?=
A2A_TCK ?=

.PHONY: test-chat-ui
test-chat-ui: ## Build agent-chat-ui and drive it in Chromium (Debian's) against a real server; AGENT_CHAT_UI=directory of its sources
	@[ -n "$(AGENT_CHAT_UI)" ] || { echo 'AGENT_CHAT_UI=DIRECTORY names the sources of agent-chat-ui' >&2; exit 2; }
	$(CARGO) build --bin perihelion
	@tests/clients/chat_ui.sh "$(AGENT_CHAT_UI)"

.PHONY: test-a2a
test-a2a: ## Hold a real server to the public TCK of A2A 1.0; A2A_TCK=directory of its branch 1.0-dev
	@[ -n "$(A2A_TCK)" ] || { echo 'A2A_TCK=DIRECTORY names the TCK of A2A, branch 1.0-dev' >&2; exit 2; }
	$(CARGO) build --bin perihelion
	@tests/clients/a2a.sh "$(CLIENTS)" "$(A2A_TCK)"

.PHONY: test-openapi
test-openapi: ## Install schemathesis from PyPI, and test a real server against its own description; EXAMPLES=50 per operation
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
