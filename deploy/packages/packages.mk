# Packages of the program, and releases; docs/project/releasing.md explains them.

.PHONY: packages test-packages test-backup release check-deploy

packages: ## Build the wheel, npm packages, Debian package, archive and image from one release build (into target/packages)
	deploy/packages/build.sh

test-packages: ## Install each of the packages in a clean environment, run it there, and uninstall it
	deploy/packages/test.sh

test-backup: ## Back up and restore both databases as the deployment guide says, and finish a crashed thread on the copies
	$(CARGO) build --bin perihelion
	tests/postgres.sh run tests/releases/backup.sh "$(or $(CARGO_TARGET_DIR),target)/debug/perihelion"

release: ## Make a release: VERSION=1.2.3; without PUBLISH=yes, only show it (version, changelog, packages, checksums, notes)
	deploy/packages/release.sh

check-deploy: ## Render the Helm chart and check all manifests against the schemas of Kubernetes (helm from PyPI)
	deploy/check.sh
