"""An OCI image without a daemon: libraries and bubblewrap from Debian's packages, the program, and nothing else.

Layout: https://github.com/opencontainers/image-spec/blob/main/image-layout.md; `manifest.json` lets `docker load` read it.
"""

import datetime
import hashlib
import json
import pathlib
import re
import subprocess
import tempfile

import about
import archives

# What the program loads, the certificates of endpoints, and the sandbox with its libraries.
PACKAGES = ["libc6", "libgcc-s1", "ca-certificates", "bubblewrap", "libcap2", "libselinux1", "libpcre2-8-0"]
LEFT_OUT = ("usr/share/man/", "usr/share/lintian/", "usr/share/locale/", "usr/sbin/", "usr/share/bash-completion/", "usr/share/zsh/")
USER = 10001
MEDIA = "application/vnd.oci.image"


def base():
    """Returns the files of the base, as `{path: (mode, bytes)}`, and the name, version and licence of each of its packages."""
    entries, names = {}, []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        # The newest packages with their security updates, whatever this machine has: with lists of our own, as this user.
        for place in ["lists/partial", "archives/partial"]:
            (folder / place).mkdir(parents=True)
        own = {"APT::Sandbox::User": "root", "Dir::State": folder, "Dir::State::status": "/dev/null", "Dir::Cache": folder}
        options = [word for name, value in own.items() for word in ("-o", f"{name}={value}")]
        apt = lambda program, *words: subprocess.run([program, "-q", *options, *words], cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout
        apt("apt-get", "update")
        # The licence of libgcc is in the package of the compiler's version.
        apt("apt-get", "download", *PACKAGES, re.search(r"gcc-\d+-base", apt("apt-cache", "show", "libgcc-s1")).group())
        for package in sorted(folder.glob("*.deb")):
            subprocess.run(["dpkg-deb", "-x", package, folder / "root"], check=True)
            fields = subprocess.run(["dpkg-deb", "--show", "--showformat=${Package} ${Version}", package], check=True, stdout=subprocess.PIPE, text=True)
            # Debian's copyright files, which the image keeps, state the licences; they are no SPDX expressions.
            names.append((*fields.stdout.split(), None))
        root = folder / "root"
        for path in sorted(root.rglob("*")):
            place = str(path.relative_to(root))
            is_document = place.startswith("usr/share/doc/") and path.name != "copyright"
            if is_document or place.startswith(LEFT_OUT) or (path.is_dir() and not path.is_symlink()):
                continue
            # Debian's directories below / are links into /usr since bookworm.
            place = f"usr/{place}" if place.startswith(("bin/", "lib/", "lib64/", "sbin/")) else place
            content = str(path.readlink()) if path.is_symlink() else path.read_bytes()
            entries[place] = (path.lstat().st_mode & 0o777, content)
    certificates = [content for place, (_, content) in sorted(entries.items()) if place.startswith("usr/share/ca-certificates/")]
    entries["etc/ssl/certs/ca-certificates.crt"] = (0o644, b"\n".join(certificates))
    entries |= {name: (0o777, f"usr/{name}") for name in ["bin", "lib", "lib64"]}
    entries["etc/passwd"] = (0o644, f"root:x:0:0:root:/:/\nperihelion:x:{USER}:{USER}::/home/perihelion:/\n".encode())
    entries["etc/group"] = (0o644, f"root:x:0:\nperihelion:x:{USER}:\n".encode())
    entries["etc/nsswitch.conf"] = (0o644, b"hosts: files dns\n")
    entries |= {"tmp/": (0o1777, b""), "proc/": (0o755, b""), "dev/": (0o755, b""), "sys/": (0o755, b"")}
    # Mounted as volumes; any user may write, because Kubernetes chooses the user.
    entries |= {"home/perihelion/": (0o777, b""), "var/lib/perihelion/": (0o777, b"")}
    return archives.with_folders(entries), names


def build(directory, program, licences):
    """Writes the image as an archive into a directory; returns its path and the packages of its base."""
    own = {"usr/local/bin/perihelion": (0o755, program.read_bytes())}
    own |= {f"usr/share/doc/perihelion/{name}": (0o644, text.encode()) for name, text in licences.items()}
    files, names = base()
    layers = [archives.tar(files, compressed=False), archives.tar(archives.with_folders(own), compressed=False)]
    created = datetime.datetime.fromtimestamp(about.timestamp(), datetime.timezone.utc).isoformat()
    blobs = {}

    def blob(content, kind):
        name = hashlib.sha256(content).hexdigest()
        blobs[name] = content
        return {"mediaType": f"{MEDIA}.{kind}", "digest": f"sha256:{name}", "size": len(content)}

    config = blob(json.dumps({
        "created": created, "architecture": about.DEBIAN, "os": "linux",
        "config": {
            "User": str(USER), "WorkingDir": "/home/perihelion", "Entrypoint": ["perihelion"], "Cmd": ["serve"],
            "Env": ["PATH=/usr/local/bin:/usr/bin", "HOME=/home/perihelion", "XDG_DATA_HOME=/var/lib",
                    "PERIHELION_SERVE_ADDR=0.0.0.0:2024", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"],
            "ExposedPorts": {"2024/tcp": {}}, "Volumes": {"/var/lib/perihelion": {}}, "StopSignal": "SIGTERM",
            "Healthcheck": {"Test": ["CMD", "perihelion", "doctor", "--service"], "Interval": 10 * 10**9, "Timeout": 5 * 10**9},
            "Labels": {"org.opencontainers.image.title": "Perihelion", "org.opencontainers.image.version": about.version(),
                       "org.opencontainers.image.licenses": about.LICENCE},
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in layers]},
        "history": [{"created": created, "created_by": "base of Debian's packages"}, {"created": created, "created_by": "perihelion"}],
    }).encode(), "config.v1+json")
    written = [blob(archives.zipped(layer), "layer.v1.tar+gzip") for layer in layers]
    manifest = blob(json.dumps({"schemaVersion": 2, "mediaType": f"{MEDIA}.manifest.v1+json", "config": config, "layers": written}).encode(), "manifest.v1+json")
    tag = f"perihelion:{about.version()}"
    manifest["annotations"] = {"org.opencontainers.image.ref.name": about.version(), "io.containerd.image.name": f"docker.io/library/{tag}"}
    place = lambda entry: "blobs/sha256/" + entry["digest"].removeprefix("sha256:")
    texts = {
        "oci-layout": {"imageLayoutVersion": "1.0.0"},
        "index.json": {"schemaVersion": 2, "manifests": [manifest]},
        "manifest.json": [{"Config": place(config), "RepoTags": [tag, "perihelion:latest"], "Layers": [place(layer) for layer in written]}],
    }
    entries = {f"blobs/sha256/{name}": (0o644, content) for name, content in blobs.items()}
    entries |= {name: (0o644, json.dumps(content).encode()) for name, content in texts.items()}
    path = directory / f"perihelion-{about.version()}-{about.DEBIAN}.oci.tar"
    path.write_bytes(archives.tar(archives.with_folders(entries), compressed=False))
    return path, names
