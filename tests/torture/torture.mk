# The torture harness. `make torture` is one run on one database; runs add up with `make torture-table`.
#
#   make torture KILLS=20000 ZOMBIES=1000 CRASHES=200     the published run; SEED=… repeats what was planned in another
#   make torture DATABASE=sqlite KILLS=1000               on SQLite, one process at a time
#   make torture TORTURE_ARGS="--fills 20 --disk-mib 512" more options: `make torture TORTURE_ARGS=--help`

KILLS ?= 1000
ZOMBIES ?= 50
CRASHES ?= 10
DATABASE ?= postgres
SEED ?=
TORTURE_ARGS ?=
TORTURE_DIR := $(abspath $(or $(CARGO_TARGET_DIR),target)/torture)
# Optimised, for processes start by the thousand; not linked as slowly as what is shipped.
TORTURE = CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
	$(CARGO) test --locked --quiet --release --test torture --

.PHONY: torture torture-table

torture: ## Kill, stop and disconnect real processes; set KILLS, ZOMBIES, CRASHES, DATABASE, SEED
	$(TORTURE) --database $(DATABASE) --kills $(KILLS) --zombies $(ZOMBIES) --crashes $(CRASHES) \
		$(if $(SEED),--seed $(SEED)) $(TORTURE_ARGS)

torture-table: ## Print a table of all stored runs of `make torture`
	@$(TORTURE) merge $(TORTURE_DIR)/*.json
