# What of the service's tests is too large for each run of the suite.

FLOOD_STREAMS ?= 10000

.PHONY: test-flood

test-flood: ## Open 10,000 idle streams (FLOOD_STREAMS) and print the memory that each takes
	PERIHELION_TEST_STREAMS=$(FLOOD_STREAMS) $(CARGO) test --locked --test service -- --nocapture idle_streams
