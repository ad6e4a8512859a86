#!/usr/bin/env python3
"""Typesets some of the demo's documents as PDF, so that there are pages to cite.

usage: typeset.py

Reads documents/ beside this script and writes papers/*.pdf; every word is the document's own. A letter that the standard
fonts of PDF lack, as of Greek names, is set as "?". Needs nothing but Python 3.
"""

import pathlib, re, zlib

WIDTH, HEIGHT, MARGIN = 595, 842, 70
TITLE, HEADING, BODY = (18, 24, "B"), (13, 20, "B"), (10, 13, "R")  # size, distance from the line above, font

SIGNS = str.maketrans({"→": "->", "≤": "<=", "−": "-", "ễ": "ê", "Δ": "Delta "})

here = pathlib.Path(__file__).resolve().parent


def lines_of_news(text):
    """A release is a section; what a release says of itself is indented by two, its items by four."""
    for line in text.splitlines():
        yield (HEADING if line.startswith("Release ") else BODY), line.rstrip()


def lines_of_theory(text):
    """Sections are those of the list that the document begins with."""
    title, listed, *_ = re.split(r"\n\n(?=- )|\n\n(?=Scope of)", text, maxsplit=1)
    contents, body = re.split(r"\n\n(?=Scope of)", listed, maxsplit=1)
    sections = {" ".join(one.split())[2:] for one in contents.split("\n\n")}
    yield TITLE, title
    for paragraph in body.split("\n\n"):
        whole = " ".join(paragraph.split())
        if whole in sections:
            yield HEADING, whole
            continue
        for line in paragraph.splitlines():
            yield BODY, line
        yield BODY, ""


def pages(lines):
    page, room = [], HEIGHT - 2 * MARGIN
    for (size, distance, font), text in lines:
        # A heading does not stand alone at the foot of a page.
        if room < (distance if font == "R" else 4 * distance):
            yield page
            page, room = [], HEIGHT - 2 * MARGIN
        if text or page:
            room -= distance
            page.append((size, font, MARGIN + room, text))
    if page:
        yield page


def content(page):
    parts = []
    for size, font, y, text in page:
        said = text.translate(SIGNS).strip()
        if said:
            x = MARGIN + 5 * (len(text) - len(text.lstrip()))
            escaped = re.sub(r"([\\()])", r"\\\1", said)
            parts.append(f"BT /{font} {size} Tf {x} {y} Td ({escaped}) Tj ET")
    return zlib.compress("\n".join(parts).encode("cp1252", "replace"), 9)


def pdf(title, lines):
    streams = [content(page) for page in pages(lines)]
    kids = " ".join(f"{6 + 2 * i} 0 R" for i in range(len(streams)))
    font = "<< /Type /Font /Subtype /Type1 /BaseFont /{} /Encoding /WinAnsiEncoding >>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(streams)} >>".encode(),
        font.format("Times-Roman").encode(),
        font.format("Times-Bold").encode(),
        f"<< /Title ({title}) >>".encode(),
    ]
    for number, stream in enumerate(streams):
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {WIDTH} {HEIGHT}] /Contents {7 + 2 * number} 0 R "
            "/Resources << /Font << /R 3 0 R /B 4 0 R >> >> >>".encode()
        )
        objects.append(b"<< /Filter /FlateDecode /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
    out, places = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"), []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer\n<< /Size %d /Root 1 0 R /Info 5 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(out)


def typeset(name, title, lines):
    path = here / "papers" / f"{name}.pdf"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(pdf(title, lines))


def text_of(name):
    return (here / "documents" / f"{name}.txt").read_text(encoding="utf-8")


for year in (2013, 2018):
    news = [(TITLE, f"Time zone database: releases of {year}"), *lines_of_news(text_of(f"news/{year}"))]
    typeset(f"releases-{year}", f"Time zone database: releases of {year}", news)
typeset("theory", "Theory and pragmatics of the tz code and data", lines_of_theory(text_of("theory")))
