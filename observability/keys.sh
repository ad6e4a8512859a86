#!/usr/bin/env bash
# Writes .env with fresh secrets for compose.yaml, readable by you alone; never overwrites one.
#
# They are for this machine only: databases are made with them at their first start, so a new .env wants new
# volumes (`docker compose --profile all down --volumes`).
set -euo pipefail
cd "$(dirname "$0")"
file=${1:-.env}

if [ -e "$file" ]; then
    echo "$file is there already; remove it to have new secrets" >&2
    exit 1
fi
random() { od -An -v -N"$1" -tx1 /dev/urandom | tr -d ' \n'; }
public=pk-lf-$(random 16)
secret=sk-lf-$(random 16)
authorization="Basic $(printf '%s:%s' "$public" "$secret" | base64 | tr -d '\n')"

umask 077
cat >"$file" <<EOF
# Signing in: Grafana as admin, Langfuse as ada@example.com.
GRAFANA_PASSWORD=$(random 12)
LANGFUSE_PASSWORD=$(random 12)

# The keys of Langfuse's project, and what the collector sends with every request made of them.
LANGFUSE_PUBLIC_KEY=$public
LANGFUSE_SECRET_KEY=$secret
LANGFUSE_AUTHORIZATION="$authorization"

# Between the containers.
LANGFUSE_SALT=$(random 16)
LANGFUSE_ENCRYPTION_KEY=$(random 32)
LANGFUSE_SESSION_SECRET=$(random 32)
POSTGRES_PASSWORD=$(random 16)
CLICKHOUSE_PASSWORD=$(random 16)
REDIS_PASSWORD=$(random 16)
MINIO_PASSWORD=$(random 16)
EOF
echo "wrote $file"
