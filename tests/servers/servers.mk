# Real MCP servers from npm and PyPI, not part of `make test`: some 700 MB, installed once.
#
#   make test-servers                          all of them
#   make test-servers SERVER="git playwright"  some

.PHONY: test-servers

test-servers: ## Drive real MCP servers from npm and PyPI; installs them (700 MB) once
	@tests/servers/install.sh $(or $(CARGO_TARGET_DIR),target)/servers
	@tests/postgres.sh run $(CARGO) test --locked --test servers -- $(SERVER)
