# The engine as a package of its own. The baseline of its API is the commit in semver-baseline; raise it with each release,
# and until the first one with each change that would break a program.

ENGINE_CRATES := -p perihelion-clock -p perihelion-database -p perihelion-engine

.PHONY: semver publish-check

semver: ## Compare the engine's public API with its baseline (installs cargo-semver-checks if absent)
	@command -v cargo-semver-checks >/dev/null || $(CARGO) install cargo-semver-checks --locked
	$(CARGO) semver-checks -p perihelion-engine --baseline-rev "$$(cat crates/engine/semver-baseline)"

# In a clone, because a package has its migrations in it and the repository has them at its top.
PUBLISH := $(abspath $(or $(CARGO_TARGET_DIR),target)/publish)

publish-check: ## Build the packages of the engine and of the crates it needs as a registry would, without publishing them
	rm -rf "$(PUBLISH)" && git clone --quiet . "$(PUBLISH)" && cp -r migrations "$(PUBLISH)/crates/database/"
	cd "$(PUBLISH)" && CARGO_TARGET_DIR="$(PUBLISH)/target" $(CARGO) publish --dry-run --allow-dirty $(ENGINE_CRATES)
