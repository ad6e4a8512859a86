# Linters of the documents, from PyPI and npm; `make test` has the measures that need neither.

ENGLISH := $(abspath $(or $(CARGO_TARGET_DIR),target)/english)
# Left out: contents, and pages that tests write.
DOCUMENTS = $(shell git ls-files README.md CONTRIBUTING.md 'docs/*.md' | grep -Ev '^docs/(SUMMARY|project/tests|project/features|reference/commands|reference/routes)\.md')

.PHONY: english

english: ## Check spelling, terms, sentence length and Markdown of the documents (codespell from PyPI, textlint and markdownlint from npm)
	@mkdir -p "$(ENGLISH)" && cp tests/english/package.json "$(ENGLISH)"
	@cd "$(ENGLISH)" && npm install --no-audit --no-fund --silent
	@test -x "$(ENGLISH)/venv/bin/codespell" || { python3 -m venv "$(ENGLISH)/venv" && "$(ENGLISH)/venv/bin/pip" install --quiet codespell==2.4.3; }
	@"$(ENGLISH)/venv/bin/codespell" $(DOCUMENTS) perihelion.toml mcp-servers.toml
	@"$(ENGLISH)/node_modules/.bin/markdownlint-cli2" --no-globs --config tests/english/.markdownlint-cli2.jsonc $(DOCUMENTS) >/dev/null
	@cd "$(ENGLISH)" && node_modules/.bin/textlint --config "$(CURDIR)/tests/english/.textlintrc.json" $(addprefix "$(CURDIR)"/,$(DOCUMENTS))
	@echo 'documents: spelling, terms and Markdown are as wanted'
