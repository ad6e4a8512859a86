"""Makes every package from one build of the program, with checksums and a bill of materials."""

import argparse
import hashlib
import pathlib
import shutil

import about
import archives
import debian
import image
import licences
import manuals
import npm
import sbom
import wheel


def archive(directory, program, extras, texts):
    """Writes the archive for any Linux: program, manual pages, completions, licences."""
    name = f"perihelion-{about.version()}-linux-{about.MACHINE}"
    files = {"perihelion": (0o755, program.read_bytes()), "README.md": (0o644, (about.ROOT / "README.md").read_bytes())}
    files |= {file: (0o644, text.encode()) for file, text in texts.items()}
    files |= {str(path.relative_to(extras)): (0o644, path.read_bytes()) for path in extras.rglob("*") if path.is_file()}
    path = directory / f"{name}.tar.gz"
    path.write_bytes(archives.tar(archives.with_folders({f"{name}/{file}": entry for file, entry in files.items()})))
    return path


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--program", type=pathlib.Path, required=True, help="the program to package, stripped")
    options.add_argument("--out", type=pathlib.Path, required=True, help="the directory for the packages, which is emptied")
    options.add_argument("--agents", type=pathlib.Path, help="the wheel `perihelion-agents` as maturin built it")
    options.add_argument("--only", default="wheel,npm,deb,archive,image", help="packages to make, separated by commas")
    given = options.parse_args()
    program, out, only = given.program.resolve(), given.out.resolve(), given.only.split(",")
    shutil.rmtree(out, ignore_errors=True)
    extras = out / "extras"
    extras.mkdir(parents=True)
    about.completions(program, extras)
    manuals.pages(program, extras / "man")
    packages = about.dependencies()
    texts = {path.name: path.read_text() for path in sorted(about.ROOT.glob("LICENSE*"))}
    page = about.page()
    texts["THIRD-PARTY-LICENSES.txt"] = licences.document(packages, page)
    made = []
    if "wheel" in only:
        made.append(wheel.build(out, program, texts))
    if given.agents:
        crates = about.dependencies("crates/python/Cargo.toml", "perihelion-python")
        of_agents = texts | {"THIRD-PARTY-LICENSES.txt": licences.document(crates, [])}
        made.append(wheel.with_licences(out, given.agents, of_agents))
        bill = out / f"perihelion-agents-{about.version()}.cdx.json"
        bill.write_text(sbom.document(crates, [], package="perihelion-python"))
        made.append(bill)
    if "npm" in only:
        made += npm.build(out, program, texts)
    if "deb" in only:
        made.append(debian.build(out, program, extras, texts))
    if "archive" in only:
        made.append(archive(out, program, extras, texts))
    if "image" in only:
        path, system = image.build(out, program, texts)
        bill = path.with_suffix(".cdx.json")
        bill.write_text(sbom.document(packages, page, system))
        made += [path, bill]
    bill = out / f"perihelion-{about.version()}.cdx.json"
    bill.write_text(sbom.document(packages, page))
    shutil.rmtree(extras)
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted([*made, bill])]
    (out / "SHA256SUMS").write_text("".join(sums))
    for path in sorted(out.iterdir()):
        print(f"{path.stat().st_size / 1e6:8.1f} MB  {path.relative_to(about.ROOT) if path.is_relative_to(about.ROOT) else path}")


main()
