# Docling's tests/data (MIT), such as from a clone of docling-project/docling.
DATA ?= docling/tests/data

.PHONY: bench-parse

bench-parse: ## Compare what is parsed with docling's ground truth, word by word; DATA=…/tests/data
	$(CARGO) run --release --package perihelion-parse --example fidelity -- $(DATA)
