# The simulation: the real runner over a store that fails, seed by seed, on every core.
#
#   make simulate                  a million seeds, other ones each time
#   make simulate SEEDS=20000      fewer
#   make simulate SEED=4711        that one alone, with its story told

SEEDS ?= 1000000
SEED ?=

.PHONY: simulate
simulate: ## Play a million random scenarios of crashes and takeovers, and check every invariant
	cargo bench --quiet --bench simulation -- --seeds $(SEEDS) $(if $(SEED),--seed $(SEED))
