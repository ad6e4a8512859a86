"""Collects the licence texts of all dependencies, each text once, with the packages that it covers."""

import collections
import pathlib

import about

NAMES = ("licen", "copying", "notice", "unlicense")


def texts(package):
    """Returns the licence files of a package, those of bundled C sources included."""
    folder = pathlib.Path(package["manifest_path"]).parent
    found = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name.lower().startswith(NAMES))
    # A module of source code may be called `license` too.
    return [path.read_text(errors="replace").strip() for path in found if path.suffix.lower() not in (".rs", ".py", ".json", ".toml", ".svg", ".html")]


def standard(package, known):
    """Returns the text of a package that brings none: ours with its authors, or that of a package under the same licence."""
    licence = package["license"]
    if "Apache-2.0" in licence:
        return (about.ROOT / "LICENSE-APACHE").read_text().strip()
    if "MIT" in licence:
        terms = (about.ROOT / "LICENSE-MIT").read_text().split("\n\n", 2)[-1].strip()
        return f"MIT License\n\nCopyright (c) {', '.join(package['authors']) or 'the authors of ' + package['name']}\n\n{terms}"
    if licence not in known:
        raise SystemExit(f"{package['name']} {package['version']} brings no text of its licence, and no other package does: {licence}")
    return known[licence]


def document(packages, page):
    """Returns one text with every licence, and fails if a dependency names none."""
    covered = collections.defaultdict(list)
    lines = ["Perihelion contains the following packages, and the standard library of Rust (MIT OR Apache-2.0).", ""]
    found = {package["id"]: texts(package) for package in packages if package["source"]}
    known = {package["license"]: found[package["id"]][0] for package in packages if found.get(package["id"])}
    for package in packages:
        name = f"{package['name']} {package['version']}"
        if not package["license"]:
            raise SystemExit(f"{name} names no licence: it cannot be packaged")
        lines.append(f"{name}: {package['license']}")
        # The text of our own crates lies beside this one.
        for text in found.get(package["id"], []) or ([standard(package, known)] if package["source"] else []):
            if name not in covered[text]:
                covered[text].append(name)
    for package in page:
        name = f"{package['name']} {package['version']}"
        lines.append(f"{name} (web UI): {package['license']}")
        covered[package["text"]].append(name)
    for text, names in sorted(covered.items(), key=lambda item: item[1]):
        lines += ["", "=" * 100, ", ".join(names), "=" * 100, "", text]
    return "\n".join(lines) + "\n"
