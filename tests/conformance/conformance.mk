.PHONY: conformance

conformance: ## Run the official MCP conformance suite on both sides (brings it and its Node by npm); SIDE=client for one
	@tests/conformance/run.sh $(SIDE)
