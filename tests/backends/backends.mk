# Real backends, not part of `make test`: two virtual environments of some 900 MB each, made once.
#
#   make test-backends                          the versions that are known to work
#   make test-backends MLFLOW_VERSION=3.5.0     another version; PHOENIX_VERSION and PYTHON likewise

.PHONY: test-backends

test-backends: ## Compare traces with those that Phoenix and MLflow return; installs both from PyPI (1.8 GB) once
	@echo 'Phoenix and MLflow are installed from PyPI into $(abspath $(or $(CARGO_TARGET_DIR),target)/backends), unless they are there.'
	$(CARGO) test --locked --test backends -- --nocapture --test-threads=1
