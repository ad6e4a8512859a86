"""Writes a software bill of materials in CycloneDX 1.6 (https://cyclonedx.org/docs/1.6/json/)."""

import datetime
import json
import uuid

import about


def component(package):
    """Returns a dependency as a CycloneDX component, named by its package URL."""
    url = f"pkg:cargo/{package['name']}@{package['version']}"
    entry = {"type": "library", "bom-ref": url, "name": package["name"], "version": package["version"], "purl": url}
    if package["license"]:
        entry["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    return entry


def document(packages):
    """Returns the bill as JSON; its serial number depends on the version and the time of the commit."""
    version = about.version()
    time = datetime.datetime.fromtimestamp(about.timestamp(), datetime.timezone.utc)
    names = {package["id"]: f"pkg:cargo/{package['name']}@{package['version']}" for package in packages}
    by_name = {package["name"]: names[package["id"]] for package in packages}
    program = names[next(package["id"] for package in packages if package["name"] == "perihelion")]
    return json.dumps({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": uuid.uuid5(uuid.NAMESPACE_URL, f"{program}#{about.timestamp()}").urn,
        "version": 1,
        "metadata": {
            "timestamp": time.isoformat().replace("+00:00", "Z"),
            "component": {"type": "application", "bom-ref": program, "name": "perihelion", "version": version, "purl": program},
        },
        "components": [component(package) for package in packages if package["name"] != "perihelion"],
        "dependencies": [
            {
                "ref": names[package["id"]],
                "dependsOn": sorted({by_name[one["name"]] for one in package["dependencies"]
                                     if one["kind"] != "dev" and one["name"] in by_name and one["name"] != package["name"]}),
            }
            for package in packages
        ],
    }, indent=1) + "\n"
