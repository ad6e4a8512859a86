"""Writes software bills of materials in CycloneDX 1.6 (https://cyclonedx.org/docs/1.6/json/)."""

import datetime
import json
import platform
import subprocess
import uuid

import about


def component(url, name, version, licence):
    """Returns a component, named by its package URL (https://github.com/package-url/purl-spec)."""
    entry = {"type": "library", "bom-ref": url, "name": name, "version": version, "purl": url}
    if licence:
        # Some packages still write the older form of SPDX expressions.
        entry["licenses"] = [{"expression": " OR ".join(part.strip() for part in licence.split("/"))}]
    return entry


def of_crate(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def of_npm(package):
    return f"pkg:npm/{package['name'].replace('@', '%40')}@{package['version']}"


def compiler():
    """Returns the standard library of Rust, which is compiled in, as a component."""
    version = subprocess.run(["rustc", "--version"], cwd=about.ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.split()[1]
    return component(f"pkg:github/rust-lang/rust@{version}", "rust-std", version, "MIT OR Apache-2.0")


def document(crates, page, system=(), package="perihelion"):
    """Returns the bill as JSON; its serial number depends on what it lists and the time of the commit.

    `crates` are cargo's descriptions with the ids that each needs, `page` the npm packages of the web UI, `system` the
    name, version and licence of the distribution's packages in an image. `package` names the one that contains the rest.
    """
    time = datetime.datetime.fromtimestamp(about.timestamp(), datetime.timezone.utc)
    urls = {one["id"]: of_crate(one) for one in crates}
    program = next(one for one in crates if one["name"] == package)
    distribution = platform.freedesktop_os_release()["ID"]
    rust = compiler()
    others = [rust, *(component(of_npm(one), one["name"], one["version"], one["license"]) for one in page)]
    others += [component(f"pkg:deb/{distribution}/{name}@{version}?arch={about.DEBIAN}", name, version, licence) for name, version, licence in system]
    components = [component(of_crate(one), one["name"], one["version"], one["license"]) for one in crates if one is not program] + others
    root = {**component(of_crate(program), package, program["version"], program["license"]), "type": "application"}
    needs = {of_crate(one): sorted({urls[needed] for needed in one["needs"] if needed in urls}) for one in crates}
    needs[root["bom-ref"]] = sorted({*needs[root["bom-ref"]], *(one["bom-ref"] for one in others)})
    return json.dumps({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": uuid.uuid5(uuid.NAMESPACE_URL, f"{root['purl']}#{about.timestamp()}#{len(components)}").urn,
        "version": 1,
        "metadata": {"timestamp": time.isoformat().replace("+00:00", "Z"), "component": root},
        "components": components,
        "dependencies": [{"ref": ref, "dependsOn": on} for ref, on in needs.items()]
        + [{"ref": one["bom-ref"], "dependsOn": []} for one in others],
    }, indent=1) + "\n"
