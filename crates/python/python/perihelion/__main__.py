"""`python -m perihelion copy SOURCE TARGET`."""

from __future__ import annotations

import argparse

from perihelion import PerihelionSaver, copy_from


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m perihelion")
    commands = parser.add_subparsers(required=True)
    copy = commands.add_parser("copy", help="copy the database of a PostgresSaver or SqliteSaver, with its history")
    copy.add_argument("source", help="connection string or SQLite file of the other saver")
    copy.add_argument("target", help="connection string or SQLite file to copy to")
    options = parser.parse_args()
    with PerihelionSaver.from_conn_string(options.target) as saver:
        copied = copy_from(options.source, saver)
    print(f"Copied {copied.checkpoints} checkpoints of {copied.threads} threads.")


if __name__ == "__main__":
    main()
