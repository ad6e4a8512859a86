# What can be checked of observability/ without containers. `make test` reads the files; this asks the tools that will.

.PHONY: observability

observability: ## Check the configurations of observability/ with promtool and, if installed, otelcol and docker compose
	@command -v promtool >/dev/null || { echo 'promtool is missing (Debian: apt-get install prometheus)' >&2; exit 1; }
	cd observability && promtool check config prometheus.yml && promtool test rules alerts.test.yml
	@if command -v otelcol-contrib >/dev/null; then \
		LANGFUSE_AUTHORIZATION='Basic eA==' otelcol-contrib validate --config observability/collector.yaml; \
	else echo 'collector.yaml was not checked: there is no otelcol-contrib here'; fi
	@if docker compose version >/dev/null 2>&1; then \
		GRAFANA_PASSWORD=x docker compose --file observability/compose.yaml --profile all config --quiet; \
	else echo 'compose.yaml was not checked: there is no docker compose here'; fi
