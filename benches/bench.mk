# Benchmarks. `make bench` measures ours, `make bench-peers` puts LangGraph beside it, both on a
# throw-away Postgres server that flushes every commit; docs/project/performance.md explains the figures.
#
#   BENCH_ARGS   narrows the cases:             BENCH_ARGS="--only postgres-1000 --runs 3"
#   BENCH_WITH   runs everything under a tool:  BENCH_WITH="chrt -f 10" on a machine that is not idle (root)

BENCH_ARGS ?= --runs 3
BENCH_WITH ?=
BENCH_DIR := $(abspath $(or $(CARGO_TARGET_DIR),target)/bench)
PEER_VENV := $(BENCH_DIR)/peers
BENCH = cargo bench --quiet -p perihelion-benches --bench
STAR = $(BENCH) star --
ON_POSTGRES = TEST_POSTGRES_SETTINGS="-c shared_buffers=512MB -c max_wal_size=4GB" \
	$(BENCH_WITH) tests/postgres.sh run

.PHONY: bench bench-peers bench-report bench-build bench-menu bench-recall bench-meaning bench-documents bench-skills bench-turns

bench: bench-build ## Measure the engine and its stores: JSON lines and tables
	$(ON_POSTGRES) $(STAR) --bench matrix --out $(BENCH_DIR)/star.jsonl $(BENCH_ARGS)
	@$(STAR) --bench table --out $(BENCH_DIR)/star.jsonl

bench-peers: bench-build $(PEER_VENV)/ready ## Measure LangGraph on the same databases, for comparison
	$(ON_POSTGRES) $(STAR) --bench matrix --peer $(PEER_VENV)/bin/python \
		--out $(BENCH_DIR)/peers.jsonl $(BENCH_ARGS)
	@$(STAR) --bench table --out $(BENCH_DIR)/peers.jsonl

bench-report: bench bench-peers ## Run bench and bench-peers, for docs/project/performance.md

# RECALL_COLLECTIONS names a directory with cranfield/ and cacm/, as crates/recall/benches/collections says.
bench-recall: ## Measure keyword and vector search on judged collections (RECALL_COLLECTIONS), and on 20,000 texts
	$(BENCH_WITH) tests/postgres.sh run cargo bench --quiet -p perihelion-recall --bench collections

# RECALL_COLLECTIONS names a directory with cranfield/, cacm/, cisi/ and vaswani/, as benches/meaning/meaning.py says.
bench-meaning: $(BENCH_DIR)/meaning/ready ## Compare static word vectors with keywords on judged collections (RECALL_COLLECTIONS)
	$(BENCH_DIR)/meaning/bin/python benches/meaning/meaning.py $(RECALL_COLLECTIONS)

$(BENCH_DIR)/meaning/ready: benches/meaning/requirements.txt
	python3 -m venv $(BENCH_DIR)/meaning
	$(BENCH_DIR)/meaning/bin/pip install --quiet --no-deps -r $<
	touch $@

# DOCUMENTS_CHUNKS says how many pieces (20,000), DOCUMENTS_ONLY=postgres leaves SQLite out.
bench-documents: ## Measure adding, finding, changing and deleting documents on both databases
	tests/postgres.sh run cargo bench --quiet -p perihelion-documents --bench library

bench-skills: ## Measure the savings by skills in a family of tasks
	cargo nextest run --workspace --lib --bins --tests --no-capture -E 'test(fewer_model_and_tool_calls_with_skills)'

bench-turns: ## Print the processor time of a turn, of each 40 on a thread that grows to 400
	cargo nextest run --workspace --test turns --run-ignored only --no-capture

bench-menu: bench-program ## Measure a start with a hundred servers whose tools are cached
	$(BENCH) menu

RUN = $(BENCH) run -- --bench
RUN_ARGS ?=

.PHONY: bench-run
bench-run: bench-program ## Measure the overhead of whole runs, prompts by role, and the draining of threads
	$(RUN) $(RUN_ARGS)
	BENCH_SERVE="$(RUN)" $(ON_POSTGRES) benches/serve/postgres.sh $(RUN_ARGS)

# Each has connections of its own; a server takes a hundred unless it is told otherwise.
WORKERS ?= 64

.PHONY: bench-workers
bench-workers: bench-program ## Measure WORKERS worker processes of 64 threads each on one Postgres, and its lock waits
	BENCH_SERVE="$(RUN)" TEST_POSTGRES_SETTINGS="-c shared_buffers=512MB -c max_wal_size=4GB -c max_connections=4000" \
		$(BENCH_WITH) tests/postgres.sh run benches/serve/postgres.sh --workers $(WORKERS)

bench-build:
	@$(BENCH) star --no-run

# A benchmark of the program starts the one that is built here, and uses the crates that were compiled for it.
.PHONY: bench-program
bench-program:
	@cargo build --quiet --release --bin perihelion

$(PEER_VENV)/ready: benches/peers/requirements.txt
	@mkdir -p $(BENCH_DIR)
	python3 -m venv $(PEER_VENV)
	$(PEER_VENV)/bin/pip install --quiet -r $<
	@touch $@

bench-analysis: ## Measure guard, linking and joins on public questions in $PERIHELION_ANALYSIS_CORPORA
	$(CARGO) bench -p perihelion-analysis --bench corpora

# The service beside the reference server, which is installed from PyPI into a directory of its own.
#   BENCH_SERVE="cargo bench --profile dev --quiet -p perihelion-benches --bench serve -- --bench" measures an unoptimised build
#   SERVE_ARGS="--runs 400 --at-once 32 --streams 400 --idle 5000 --active 1000"
SERVE_ARGS ?=
export BENCH_SERVE ?= $(BENCH) serve -- --bench

.PHONY: bench-serve
bench-serve: bench-program ## Measure the service on SQLite and Postgres next to LangGraph's own server, with one client
	$(ON_POSTGRES) benches/serve/together.sh "$(BENCH_DIR)" $(SERVE_ARGS)

# The same on an empty and on a filled database: what one Postgres holds (docs/project/scale-figures.md). A million threads take 25 GB.
SCALE_THREADS ?= 1000000
SCALE_STEPS ?= 20
# Calls of models and tools in each thread.
SCALE_EFFECTS ?= 10

.PHONY: bench-scale
bench-scale: bench-program ## Measure the service on a filled Postgres: SCALE_THREADS threads of SCALE_STEPS steps
	$(ON_POSTGRES) benches/serve/scale.sh $(SCALE_THREADS) $(SCALE_STEPS) $(SCALE_EFFECTS) $(SERVE_ARGS)

.PHONY: measure-builds
measure-builds: ## Time cold builds of the engine and of the program, and print the size of the program (BUILDS_DIR: an empty directory to keep them)
	benches/builds/measure.sh
