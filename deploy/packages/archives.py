"""Writes archives that depend on their contents alone: sorted, owned by root, dated by the commit."""

import gzip
import io
import tarfile

import about


def tar(entries, compressed=True):
    """Returns a tar of `{path: (mode, bytes)}`; a path that ends in a slash is a directory, text bytes a symbolic link."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, (mode, content) in sorted(entries.items()):
            entry = tarfile.TarInfo(path.rstrip("/"))
            entry.mode, entry.mtime = mode, about.timestamp()
            entry.uname = entry.gname = "root"
            if path.endswith("/"):
                entry.type = tarfile.DIRTYPE
                archive.addfile(entry)
            elif isinstance(content, str):
                entry.type, entry.linkname = tarfile.SYMTYPE, content
                archive.addfile(entry)
            else:
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return zipped(buffer.getvalue()) if compressed else buffer.getvalue()


def zipped(content):
    """Returns bytes compressed by gzip, without a time or a name in the header."""
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=6, mtime=0, filename="") as out:
        out.write(content)
    return buffer.getvalue()


def with_folders(entries):
    """Returns the entries with a directory for each folder of their paths."""
    folders = {}
    for path in entries:
        parts = path.rstrip("/").split("/")[:-1]
        for depth in range(1, len(parts) + 1):
            folders["/".join(parts[:depth]) + "/"] = (0o755, b"")
    return {**folders, **entries}
