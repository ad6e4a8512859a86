"""Collects the licence texts of all dependencies, each text once, with the packages that it covers."""

import collections
import pathlib

NAMES = ("licen", "copying", "notice", "unlicense")


def texts(package):
    """Yields the licence files beside a package's manifest."""
    folder = pathlib.Path(package["manifest_path"]).parent
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.name.lower().startswith(NAMES):
            yield path.read_text(errors="replace").strip()


def document(packages):
    """Returns one text with every licence, and fails if a dependency names none."""
    covered = collections.defaultdict(list)
    lines = ["Perihelion contains the following packages.", ""]
    for package in packages:
        licence = package["license"] or package["license_file"]
        if not licence:
            raise SystemExit(f"{package['name']} {package['version']} names no licence: it cannot be packaged")
        lines.append(f"{package['name']} {package['version']}: {licence}")
        for text in texts(package):
            covered[text].append(f"{package['name']} {package['version']}")
    for text, names in sorted(covered.items(), key=lambda item: item[1]):
        lines += ["", "=" * 100, ", ".join(names), "=" * 100, "", text]
    return "\n".join(lines) + "\n"
