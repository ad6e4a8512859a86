#!/usr/bin/env python3
"""Makes the demo's data from a source release of the IANA time zone database.

usage: make.py TZ_SOURCE_DIRECTORY

Needs `zic` (Debian: libc-bin). Writes tables/*.csv and documents/ beside this script; nothing is invented: tables are parsed
from the release's tables and from the binaries that zic compiles, documents are the release's own prose.
"""

import csv, html.parser, pathlib, re, shutil, struct, subprocess, sys, tempfile
from datetime import datetime, timedelta

FIRST_YEAR, LAST_YEAR = 1970, 2026
REGIONS = ["africa", "antarctica", "asia", "australasia", "europe", "northamerica", "southamerica"]

source = pathlib.Path(sys.argv[1])
here = pathlib.Path(__file__).resolve().parent
tables, documents = here / "tables", here / "documents"
for directory in (tables, documents):
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()


def text_of(name):
    return (source / name).read_text(encoding="utf-8")


def data_lines(name):
    return [line for line in text_of(name).splitlines() if line and not line.startswith("#")]


def write_table(name, header, rows):
    with open(tables / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def write_document(name, text):
    path = documents / name
    path.parent.mkdir(exist_ok=True)
    text = re.sub(r"\n{3,}", "\n\n", text.replace("\t", "    ")).strip("\n") + "\n"
    path.write_text("".join(line.rstrip() + "\n" for line in text.splitlines()), encoding="utf-8")


def degrees(text):
    """+DDMM or +DDMMSS, as ISO 6709 writes it, to a decimal fraction."""
    sign, digits = (-1 if text[0] == "-" else 1), text[1:]
    seconds = int(digits[-2:]) if len(digits) >= 6 else 0
    body = digits[:-2] if len(digits) >= 6 else digits
    return round(sign * (int(body[:-2]) + int(body[-2:]) / 60 + seconds / 3600), 4)


def transitions(path):
    """Yields (second since 1970, offset, is_dst, abbreviation, offset before) from a compiled zone."""
    raw = path.read_bytes()
    counts = lambda at: struct.unpack(">4sc15x6I", raw[at:at + 44])[2:]
    isut, isstd, leap, times, types, chars = counts(0)
    at = 44 + times * 4 + times + types * 6 + chars + leap * 8 + isstd + isut
    isut, isstd, leap, times, types, chars = counts(at)
    at += 44
    moments = struct.unpack(f">{times}q", raw[at:at + 8 * times])
    at += 8 * times
    indexes, at = raw[at:at + times], at + times
    kinds = [struct.unpack(">lBB", raw[at + 6 * i:at + 6 * i + 6]) for i in range(types)]
    at += 6 * types
    names = raw[at:at + chars]
    before = kinds[0][0]
    for moment, index in zip(moments, indexes):
        offset, is_dst, name = kinds[index]
        yield moment, offset, is_dst, names[name:names.index(b"\0", name)].decode(), before
        before = offset


# --- tables -----------------------------------------------------------------------------------------------------------

write_table("countries", ["code", "name"], [line.split("\t") for line in data_lines("iso3166.tab")])

zones, zone_countries = [], []
for line in data_lines("zone1970.tab"):
    codes, coordinates, name, *comment = line.split("\t")
    latitude, longitude = re.fullmatch(r"([+-]\d+)([+-]\d+)", coordinates).groups()
    zones.append([name, degrees(latitude), degrees(longitude), comment[0] if comment else ""])
    zone_countries += [[name, code] for code in codes.split(",")]
zones.sort()
write_table("zones", ["name", "latitude", "longitude", "comment"], zones)
write_table("zone_countries", ["zone", "country"], sorted(zone_countries))

with tempfile.TemporaryDirectory() as compiled:
    subprocess.run(["zic", "-b", "fat", "-d", compiled] + [str(source / name) for name in REGIONS], check=True)
    rows = []
    for name, *_ in zones:
        for moment, offset, is_dst, abbreviation, before in transitions(pathlib.Path(compiled, name)):
            at = datetime(1970, 1, 1) + timedelta(seconds=max(moment, -5_000_000_000))
            if FIRST_YEAR <= at.year <= LAST_YEAR:
                rows.append([name, at.strftime("%Y-%m-%d %H:%M:%S"), before, offset, is_dst, abbreviation])
write_table("transitions", ["zone", "changed_at", "offset_before", "offset_after", "is_dst", "abbreviation"], rows)

aliases = [line.split()[2:0:-1] for line in data_lines("backward") if line.startswith("Link")]
write_table("aliases", ["alias", "zone"], sorted(aliases))

leaps = []
for line in data_lines("leap-seconds.list"):
    seconds, difference = line.split()[:2]
    leaps.append([(datetime(1900, 1, 1) + timedelta(seconds=int(seconds))).strftime("%Y-%m-%d"), difference])
write_table("leap_seconds", ["effective_on", "tai_minus_utc"], leaps)

# --- documents --------------------------------------------------------------------------------------------------------

for region in REGIONS:
    # The commentary only: rule and zone lines between two comments become one blank line.
    lines = [re.sub(r"^# ?", "", line) if line.startswith("#") else "" for line in text_of(region).splitlines()]
    write_document(f"regions/{region}.txt", "\n".join(lines))

by_year = {}
for release in re.split(r"(?m)^(?=Release )", text_of("NEWS"))[1:]:
    date = re.match(r"Release \S+ - (\d{4})", release)
    year = int(date.group(1)) if date else 0
    by_year.setdefault(f"{year}" if year >= 2010 else "before-2010", []).append(release)
for year, releases in by_year.items():
    write_document(f"news/{year}.txt", "".join(releases))

write_document("calendars.txt", text_of("calendars"))


class Prose(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.out, self.hidden = [], 0

    def handle_starttag(self, tag, attrs):
        self.hidden += tag in ("style", "title", "script")
        if tag in ("p", "h1", "h2", "h3", "h4", "ul", "dl", "table", "tr", "pre", "section", "nav"):
            self.out.append("\n\n")
        if tag in ("li", "dt", "dd", "br"):
            self.out.append("\n")
        if tag == "li":
            self.out.append("- ")

    def handle_endtag(self, tag):
        self.hidden -= tag in ("style", "title", "script")
        if tag in ("h1", "h2", "h3", "h4"):
            self.out.append("\n\n")

    def handle_data(self, data):
        if not self.hidden:
            self.out.append(data)


prose = Prose()
prose.feed(text_of("theory.html"))
write_document("theory.txt", "\n".join(line.strip() for line in "".join(prose.out).splitlines()))
