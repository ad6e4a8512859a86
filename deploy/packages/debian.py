"""The Debian package: program, manual pages, completions, licences and the units of systemd, which stay switched off."""

import shutil
import subprocess

import about

SHARE = "usr/share"


def build(directory, program, extras, licences):
    """Writes the package by `dpkg-deb` into a directory and returns its path."""
    version = about.version()
    root = directory / "debian"
    shutil.rmtree(root, ignore_errors=True)
    places = {
        program: "usr/bin/perihelion",
        extras / "completions/perihelion": f"{SHARE}/bash-completion/completions/perihelion",
        extras / "completions/_perihelion": f"{SHARE}/zsh/vendor-completions/_perihelion",
        extras / "completions/perihelion.fish": f"{SHARE}/fish/vendor_completions.d/perihelion.fish",
        **{page: f"{SHARE}/man/man1/{page.name}" for page in sorted((extras / "man").iterdir())},
    }
    for source, place in places.items():
        target = root / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        target.chmod(0o755 if place.startswith("usr/bin/") else 0o644)
    for unit in (about.ROOT / "deploy/systemd").iterdir():
        target = root / "usr/lib/systemd/system" / unit.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(unit.read_text().replace("/usr/local/bin/perihelion", "/usr/bin/perihelion").replace("copy to /etc/systemd/system, then ", ""))
        target.chmod(0o644)
    # Where the units look for settings.
    (root / "etc/perihelion").mkdir(parents=True)
    subprocess.run(["gzip", "-9n", *(root / SHARE / "man/man1").iterdir()], check=True)
    documents = root / SHARE / "doc/perihelion"
    documents.mkdir(parents=True)
    (documents / "copyright").write_text("\n\n".join(licences.values()))
    size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) // 1024
    control = {
        "Package": "perihelion", "Version": version, "Architecture": about.DEBIAN, "Section": "utils", "Priority": "optional",
        "Maintainer": "Perihelion maintainers <maintainers@perihelion.invalid>", "Installed-Size": size,
        "Depends": f"libc6 (>= {about.GLIBC}), libgcc-s1 | libgcc1, ca-certificates", "Recommends": "bubblewrap, less, python3",
        "Description": f"{about.SUMMARY}\n One binary: threads that survive crashes, MCP servers as agents, approvals and traces.",
    }
    (root / "DEBIAN").mkdir()
    (root / "DEBIAN/control").write_text("".join(f"{name}: {value}\n" for name, value in control.items()))
    path = directory / f"perihelion_{version}_{about.DEBIAN}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "-z1", "--build", root, path], check=True, stdout=subprocess.DEVNULL,
                   env={"PATH": "/usr/bin:/bin", "SOURCE_DATE_EPOCH": str(about.timestamp())})
    shutil.rmtree(root)
    return path
