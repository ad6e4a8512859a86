# The Python package perihelion-agents: its wheel, its tests on both databases, LangGraph's own tests, and benchmarks.
#
#   PYTHON             the interpreter (python3): 3.10 or later
#   PYTHON_VERSIONS    versions for test-python-versions (3.10 3.11 3.12 3.13 3.14)
#   PYTHON_TESTS       which tests:  make test-python PYTHON_TESTS="-k conformance"
#   LANGGRAPH_SOURCE   a checkout of LangGraph for test-python-langgraph; without it, the source packages on PyPI are used
#   PYTHON_BENCH       cases of bench-savers:  PYTHON_BENCH="--rounds 10 100 --runs 1"

PYTHON ?= python3
PYTHON_VERSIONS ?= 3.10 3.11 3.12 3.13 3.14
PYTHON_TESTS ?=
PYTHON_BENCH ?=
PYTHON_CRATE := crates/python
PYTHON_OUT := $(abspath $(or $(CARGO_TARGET_DIR),target)/python-package)
PYTHON_VENV := $(PYTHON_OUT)/venv
PYTHON_PYTEST = $(PYTHON_VENV)/bin/pytest --quiet -c $(PYTHON_CRATE)/pyproject.toml --rootdir $(PYTHON_CRATE)

.PHONY: test-python test-hosted test-python-short test-python-versions test-python-langgraph bench-savers check-savers wheel python-wheel

$(PYTHON_VENV)/ready: $(PYTHON_CRATE)/tests/requirements.txt
	@mkdir -p $(PYTHON_OUT)
	$(PYTHON) -m venv $(PYTHON_VENV)
	$(PYTHON_VENV)/bin/pip install --quiet -r $<
	@touch $@

# The wheel as it is tested: built without optimising across crates, installed beside its dependencies.
python-wheel: $(PYTHON_VENV)/ready
	@rm -rf $(PYTHON_OUT)/wheels
	cd $(PYTHON_CRATE) && VIRTUAL_ENV=$(PYTHON_VENV) CARGO=$(CARGO) CARGO_TARGET_DIR=$(PYTHON_OUT) \
		$(PYTHON_VENV)/bin/maturin build --quiet --locked --out $(PYTHON_OUT)/wheels
	$(PYTHON_VENV)/bin/pip install --quiet --no-deps --force-reinstall $(PYTHON_OUT)/wheels/*.whl

wheel: $(PYTHON_VENV)/ready ## Build the wheel of the Python package for a release
	cd $(PYTHON_CRATE) && CARGO_TARGET_DIR=$(PYTHON_OUT) $(PYTHON_VENV)/bin/maturin build --release --locked \
		--out $(PYTHON_OUT)/release
	@ls $(PYTHON_OUT)/release

test-python: python-wheel test-hosted ## Build the Python package in a separate environment and test it on SQLite and Postgres
	$(PYTHON_VENV)/bin/mypy --config-file $(PYTHON_CRATE)/pyproject.toml $(PYTHON_CRATE)/python/perihelion
	tests/postgres.sh run $(PYTHON_PYTEST) $(PYTHON_CRATE)/tests $(PYTHON_TESTS)

# The program is built here unless HOSTED_PROGRAM names one.
test-hosted: python-wheel ## Test serve --graphs with LangGraph graphs while their process and the server are killed
	@[ -n "$$HOSTED_PROGRAM" ] || $(CARGO) build --bin perihelion
	HOSTED_PROGRAM=$${HOSTED_PROGRAM:-$(abspath $(or $(CARGO_TARGET_DIR),target))/debug/perihelion} \
		tests/postgres.sh run $(PYTHON_PYTEST) $(PYTHON_CRATE)/tests/hosted $(PYTHON_TESTS)

test-python-short: ## Run the part of test-python that `make test` contains: SQLite only
	PYTHON=$(PYTHON) tests/python.sh $(PYTHON_TESTS)

test-python-versions: python-wheel ## Test the wheel on SQLite with each installed version of Python
	env -u TEST_DATABASE_URL $(PYTHON_CRATE)/tests/versions.sh $(PYTHON_OUT) $(PYTHON_OUT)/wheels/*.whl $(PYTHON_VERSIONS) -- $(PYTHON_TESTS)

test-python-langgraph: python-wheel ## Run LangGraph's own checkpoint, Pregel and store tests on the Python package
	PYTHON=$(PYTHON_VENV)/bin/python tests/postgres.sh run $(PYTHON_CRATE)/tests/langgraph/run.sh $(PYTHON_OUT)/langgraph $(PYTHON_TESTS)

ON_FAST_POSTGRES = TEST_POSTGRES_SETTINGS="-c shared_buffers=512MB -c max_wal_size=4GB" tests/postgres.sh run

bench-savers: python-wheel ## Measure the Python savers next to LangGraph's on SQLite and Postgres
	$(ON_FAST_POSTGRES) $(PYTHON_VENV)/bin/python $(PYTHON_CRATE)/benches/savers.py $(PYTHON_BENCH)

check-savers: python-wheel ## Check the ratios of the Python savers that do not depend on the machine
	$(ON_FAST_POSTGRES) $(PYTHON_VENV)/bin/python $(PYTHON_CRATE)/benches/savers.py --check
