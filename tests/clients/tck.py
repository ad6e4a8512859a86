"""Runs the public TCK of A2A 1.0 against a server, by JSON-RPC and by REST.

A failure that `tck_expected.txt` does not name fails it, and so does a row of that file that passes.

    python tck.py DIRECTORY-OF-THE-TCK [what pytest takes]
"""

import collections
import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

from world import HERE, World

EXPECTED = HERE / "tck_expected.txt"


def expected():
    """Reads the rows that are expected to fail, with the reason that stands above them."""
    rows, why, is_row = {}, [], False
    for line in filter(str.strip, EXPECTED.read_text().splitlines()):
        if line.startswith("#"):
            why = [line[1:].strip()] if is_row else [*why, line[1:].strip()]
        else:
            rows[line.strip()] = " ".join(why)
        is_row = not line.startswith("#")
    return rows


def results(report):
    """Returns how each row went, by the name that the file of expected ones has: file, class and test."""
    went = {}
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname').removeprefix('tests.compatibility.')}::{case.get('name')}"
        kinds = {one.tag: one for one in case}
        if "failure" in kinds or "error" in kinds:
            went[name] = "failed"
        elif "skipped" in kinds:
            went[name] = "xfailed" if kinds["skipped"].get("type") == "pytest.xfail" else "skipped"
        else:
            went[name] = "passed"
    return went


def main():
    # The TCK's own receiver of notifications is on this machine.
    os.environ["PERIHELION_SERVE_CALLBACK_HOSTS"] = "127.0.0.1"
    with World() as world, tempfile.TemporaryDirectory() as place:
        _, url = world.serve()
        report = pathlib.Path(place) / "junit.xml"
        command = [
            sys.executable, "-m", "pytest", "-p", "tck_words", "-p", "no:cacheprovider", "tests/compatibility", f"--sut-host={url}",
            "--transport=jsonrpc,http_json", "--webhook-host=127.0.0.1", "--tb=line", "-q", f"--junitxml={report}", *sys.argv[2:],
        ]
        environment = {**os.environ, "PYTHONPATH": str(HERE), "PYTHONDONTWRITEBYTECODE": "1"}
        with open(pathlib.Path(place) / "said.txt", "w+") as said:
            subprocess.run(command, cwd=sys.argv[1], env=environment, stdout=said, stderr=subprocess.STDOUT)
            said.seek(0)
            text = said.read()
        if not report.exists():
            sys.exit(f"the TCK did not run:\n{text}")
        went = results(report)
    rows = expected()
    counts = collections.Counter(went.values())
    print(", ".join(f"{count} {how}" for how, count in sorted(counts.items())))
    new = sorted(name for name, how in went.items() if how == "failed" and name not in rows)
    passing = sorted(name for name in rows if went.get(name) != "failed")
    if new:
        print(text)
    for name in new:
        print(f"failed: {name}")
    for name in passing:
        print(f"expected to fail, and it is {went.get(name, 'not there')}: {name}")
    sys.exit(bool(new or passing))


if __name__ == "__main__":
    main()
