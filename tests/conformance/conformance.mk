.PHONY: conformance

conformance: ## Run the official MCP conformance suite on both sides (installs it and Node from npm); SIDE=client for one
	@tests/conformance/run.sh $(SIDE)
