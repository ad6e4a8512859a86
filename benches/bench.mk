# Benchmarks. `make bench` measures ours, `make bench-peers` puts LangGraph beside it, both on a
# throw-away Postgres server; BENCH_ARGS narrows them, as in BENCH_ARGS="--only postgres-1000 --runs 3".

BENCH_ARGS ?= --runs 3
BENCH_DIR := $(or $(CARGO_TARGET_DIR),target)/bench
PEER_VENV := $(BENCH_DIR)/peers
STAR = cargo bench --quiet --bench star --
ON_POSTGRES = tests/postgres.sh run

.PHONY: bench bench-peers bench-report

bench: ## Measure the engine and its stores (JSON lines and tables; about 15 minutes)
	@mkdir -p $(BENCH_DIR)
	$(ON_POSTGRES) $(STAR) --bench matrix --out $(abspath $(BENCH_DIR))/star.jsonl $(BENCH_ARGS)
	@$(STAR) --bench table --out $(abspath $(BENCH_DIR))/star.jsonl

bench-peers: $(PEER_VENV)/ready ## Measure LangGraph beside ours on the same databases and print the ratios
	$(ON_POSTGRES) $(STAR) --bench matrix --peer $(abspath $(PEER_VENV))/bin/python \
		--out $(abspath $(BENCH_DIR))/peers.jsonl $(BENCH_ARGS)
	@$(STAR) --bench table --out $(abspath $(BENCH_DIR))/peers.jsonl

bench-report: bench bench-peers ## Both, for docs/performance.md

$(PEER_VENV)/ready: benches/peers/requirements.txt
	@mkdir -p $(BENCH_DIR)
	python3 -m venv $(PEER_VENV)
	$(PEER_VENV)/bin/pip install --quiet -r $<
	@touch $@
