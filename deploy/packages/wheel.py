"""The wheels: `perihelion-command`, the program as a command of a Python environment, and `perihelion-agents`, which needs it.

Maturin builds the latter. Format: https://packaging.python.org/specifications/binary-distribution-format/
"""

import base64
import hashlib
import io
import time
import zipfile

import about

NAME = "perihelion_command"


def file_name():
    tag = f"py3-none-manylinux_{about.GLIBC.replace('.', '_')}_{about.MACHINE}"
    return f"{NAME}-{about.version()}-{tag}.whl"


def build(directory, program, licences):
    """Writes the wheel into a directory and returns its path."""
    version = about.version()
    info = f"{NAME}-{version}.dist-info"
    tag = file_name().removeprefix(f"{NAME}-{version}-").removesuffix(".whl")
    metadata = "\n".join([
        "Metadata-Version: 2.4", f"Name: {NAME.replace('_', '-')}", f"Version: {version}", f"Summary: {about.SUMMARY}",
        f"License-Expression: {about.LICENCE}", *(f"License-File: {name}" for name in licences),
        "Requires-Python: >=3.8", "Description-Content-Type: text/markdown", "", (about.ROOT / "README.md").read_text(),
    ])
    wheel = f"Wheel-Version: 1.0\nGenerator: perihelion\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files = {f"{NAME}-{version}.data/scripts/perihelion": (0o755, program.read_bytes()),
             f"{info}/METADATA": (0o644, metadata.encode()), f"{info}/WHEEL": (0o644, wheel.encode())}
    files |= {f"{info}/licenses/{name}": (0o644, text.encode()) for name, text in licences.items()}
    return write(directory / file_name(), info, files)


def with_licences(directory, built, licences):
    """Copies a wheel that maturin built into a directory, with the licences of what is compiled into it."""
    with zipfile.ZipFile(built) as archive:
        files = {entry.filename: (entry.external_attr >> 16 & 0o777 or 0o644, archive.read(entry)) for entry in archive.infolist()}
    record = next(path for path in files if path.endswith(".dist-info/RECORD"))
    info = record.removesuffix("/RECORD")
    del files[record]
    files |= {f"{info}/licenses/{name}": (0o644, text.encode()) for name, text in licences.items()}
    return write(directory / built.name, info, files)


def write(path, info, files):
    """Writes a wheel with its RECORD; every file bears the time of the commit."""
    record = "".join(f"{name},sha256={digest(content)},{len(content)}\n" for name, (_, content) in files.items())
    files[f"{info}/RECORD"] = (0o644, f"{record}{info}/RECORD,,\n".encode())
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (mode, content) in files.items():
            entry = zipfile.ZipInfo(name, time.gmtime(about.timestamp())[:6])
            entry.external_attr, entry.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return path


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
