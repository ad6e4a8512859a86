"""Writes a manual page for the program and for each of its commands, from what `--help` prints."""

import datetime
import re
import subprocess

import about


def pages(program, directory):
    """Writes `perihelion.1`, `perihelion-run.1` and so on into a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    waiting = [[]]
    while waiting:
        command = waiting.pop()
        text = subprocess.run([program, *command, "--help"], check=True, stdout=subprocess.PIPE, text=True).stdout
        name = "-".join(["perihelion", *command])
        (directory / f"{name}.1").write_text(page(name, text))
        waiting += [[*command, inner] for inner in commands(text) if inner != "help"]


def commands(text):
    """Returns the names that a help text lists below `Commands:`."""
    section = re.search(r"^Commands:\n((?:  .*\n|\n(?=  ))*)", text, re.MULTILINE)
    return re.findall(r"^  ([a-z][a-z-]*)(?:\s|$)", section.group(1), re.MULTILINE) if section else []


def page(name, text):
    """Returns a page of roff (groff_man(7)): the first line as its name, sections by the headings of the help."""
    summary = text.split("\n", 1)[0].rstrip(".")
    date = datetime.datetime.fromtimestamp(about.timestamp(), datetime.timezone.utc).date()
    lines = [f'.TH {name.upper()} 1 {date} "Perihelion {about.version()}"', ".SH NAME", f"{name} \\- {escaped(summary)}", ".SH DESCRIPTION", ".nf"]
    for line in text.split("\n")[1:]:
        heading = re.fullmatch(r"([A-Z][A-Za-z ]+):(.*)", line)
        if heading:
            lines += [".fi", f".SH {heading.group(1).upper()}", ".nf"]
        rest = heading.group(2).strip() if heading else line
        if rest or not heading:
            lines.append(escaped(rest))
    return "\n".join([*lines, ".fi", ""])


def escaped(line):
    line = line.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{line}" if line.startswith((".", "'")) else line
