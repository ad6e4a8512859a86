# Docling's tests/data (MIT), such as from a clone of docling-project/docling.
DATA ?= docling/tests/data

.PHONY: bench-parse

bench-parse: ## Hold what is parsed to docling's ground truth, word by word, with time and memory; DATA=…/tests/data
	$(CARGO) run --release --package perihelion-parse --example fidelity -- $(DATA)
