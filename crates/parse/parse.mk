# Docling's tests/data (MIT), such as from a clone of docling-project/docling.
DATA ?= docling/tests/data

.PHONY: bench-parse bench-chunking

bench-parse: ## Compare parsed documents with docling's ground truth, word by word, with time and memory; DATA=…/tests/data
	$(CARGO) run --release --package perihelion-parse --example fidelity -- $(DATA)

# CHUNKING_CORPORA names the directory general_evaluation_data of a clone of brandonstarxel/chunking_evaluation (MIT).
bench-chunking: ## Measure how documents are divided on the questions of CHUNKING_CORPORA
	$(CARGO) run --release --package perihelion-parse --example chunking -- $(CHUNKING_CORPORA)
