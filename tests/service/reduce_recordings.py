#!/usr/bin/env python3
"""Reduces recordings of the reference servers to what a client sees of their protocol, and to nothing that they said.

    tests/service/reduce_recordings.py DIRECTORY > tests/service/recordings.json

DIRECTORY has a folder for each scenario, with a file for each exchange: a request, a line `----- response -----`, and
the answer. Of each stay the method, the path and the status, which headers there are, the types of the fields, and of a
stream the names of its events in their order and the forms of their data. Ids become `{thread1}`, `{run1}` in the order in which they come; texts
become `string`, but for the protocol's own words in requests.
"""

import json
import pathlib
import re
import sys

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# Headers that clients read; all others are the transport's.
HEADERS = {"content-type", "location", "content-location", "x-pagination-total", "x-pagination-next", "cache-control"}
# Fields of requests whose values are words of the protocol.
WORDS = {
    "stream_mode", "multitask_strategy", "on_disconnect", "on_completion", "if_not_exists", "durability", "status",
    "sort_by", "sort_order", "strategy", "method", "channels", "select", "action", "if_exists", "graph_id", "namespace",
    "namespace_prefix", "key", "schedule", "assistant_id", "goto", "interrupt_before", "interrupt_after", "as_node",
}
# What a graph keeps in its state is the graph's.
STATES = {
    "values", "input", "interrupts", "result", "config", "configurable", "context", "command", "properties", "__interrupt__",
}


class Ids:
    """Names ids by what they are of and when they came."""

    def __init__(self):
        self.names = {}
        self.count = {}

    def name(self, kind, value):
        if value not in self.names:
            self.count[kind] = self.count.get(kind, 0) + 1
            self.names[value] = "{%s%d}" % (kind, self.count[kind])
        return self.names[value]

    def in_text(self, text):
        text = re.sub(r"/threads/(%s)" % UUID.pattern, lambda m: "/threads/" + self.name("thread", m[1]), text)
        text = re.sub(r"/runs/crons/(%s)" % UUID.pattern, lambda m: "/runs/crons/" + self.name("cron", m[1]), text)
        text = re.sub(r"/runs/(%s)" % UUID.pattern, lambda m: "/runs/" + self.name("run", m[1]), text)
        text = re.sub(r"/assistants/(%s)" % UUID.pattern, lambda m: "/assistants/" + self.name("assistant", m[1]), text)
        return UUID.sub(lambda m: self.name("id", m[0]), text)


def kind(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    return "string"


def shape(value, name=None):
    """Returns the types of a value; a list by its first element."""
    if name in STATES and isinstance(value, (dict, list)):
        return {} if isinstance(value, dict) else []
    if isinstance(value, dict):
        # A map by ids is no record of fields.
        return {key: shape(one, key) for key, one in value.items() if not UUID.fullmatch(key)}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return kind(value)


def asked(value, ids, name=None):
    """Returns a request's body with the protocol's words and without anything else that was said."""
    if name in {"input", "resume", "update", "values"}:
        return "given" if value else value
    if isinstance(value, dict):
        return {key: asked(one, ids, key) for key, one in value.items()}
    if isinstance(value, list):
        return [asked(one, ids, name) for one in value]
    if isinstance(value, str):
        return ids.in_text(value) if name in WORDS or UUID.search(value) else "string"
    return value


def parts(text):
    head, _, rest = text.partition("\n\n")
    first, *lines = head.split("\n")
    headers, body = {}, []
    for line in lines:
        name, colon, value = line.partition(": ")
        # Some recordings have the body on the line after the headers.
        if colon and re.fullmatch(r"[A-Za-z-]+", name) and not body:
            headers[name.lower()] = value
        else:
            body.append(line)
    return first, headers, "\n".join(body) + rest


def events(body):
    """Yields the names of events, without their places, and their data."""
    for one in body.split("\n\n"):
        name = re.search(r"^event: (.*)$", one, re.M)
        data = re.search(r"^data: (.*)$", one, re.M)
        if name:
            try:
                yield name[1].split("|")[0], json.loads(data[1])
            except (TypeError, ValueError):
                yield name[1].split("|")[0], None


def names(heard):
    """Returns the names of events, of several in a row one."""
    return [name for at, (name, _) in enumerate(heard) if at == 0 or heard[at - 1][0] != name]


def form(name, data):
    """Returns the types of an event's data, without what the graph itself says; none: it says nothing else."""
    if name == "custom" or data is None:
        return None
    if name in {"values", "updates"} and "method" not in data:
        return {"__interrupt__": []} if "__interrupt__" in data else {}
    if name == "messages" and isinstance(data, list):
        return {"chunk": shape(data[0]), "about": shape(data[1])}
    if name == "messages/metadata":
        # By the ids of messages.
        return shape(next(iter(data.values())))
    if name == "events":
        return {**shape(data), "data": {}}
    reduced = shape(data)
    if name == "input.requested":
        reduced["params"]["data"]["payload"] = {}
    if name in {"values", "updates"}:
        reduced["params"]["data"] = {}
    return reduced


def forms(heard):
    """Returns each form of data that events of a name have, where it comes first."""
    kept = []
    for name, data in heard:
        one = [name, form(name, data)]
        if one[1] is not None and one not in kept:
            kept.append(one)
    return kept


def ids_in(value, ids, place=""):
    """Yields where ids stand, and their names."""
    if isinstance(value, dict):
        for key, one in value.items():
            if isinstance(one, str) and UUID.fullmatch(one):
                yield place + "/" + key, ids.name(key.removesuffix("_id"), one)
            yield from ids_in(one, ids, place + "/" + key)
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from ids_in(one, ids, "%s/%d" % (place, index))


def exchange(path, ids):
    request, mark, response = path.read_text().replace("\r\n", "\n").partition("\n----- response -----\n")
    if not mark:
        return None
    line, sent, body = parts(request)
    method, target = line.split(" ")[:2]
    status, headers, answer = parts(response)
    reduced = {"method": method, "path": ids.in_text(target)}
    if "last-event-id" in sent:
        reduced["after"] = "-1" if sent["last-event-id"] == "-1" else "event"
    body = body.strip()
    if body:
        try:
            reduced["asked"] = asked(json.loads(body), ids)
        except ValueError:
            reduced["asked"] = "string"
    reduced["status"] = int(status.split(" ")[1])
    reduced["headers"] = {}
    for name in sorted(HEADERS & headers.keys()):
        value = headers[name]
        reduced["headers"][name] = value.split(";")[0] if name == "content-type" else ids.in_text(value)
    if headers.get("content-type", "").startswith("text/event-stream"):
        heard = list(events(answer))
        reduced["events"] = names(heard)
        reduced["data"] = forms(heard)
        reduced["left"] = "[client disconnected here]" in answer
    elif answer.strip():
        try:
            value = json.loads(answer)
            if re.search(r"/(wait|join)$", target) and isinstance(value, dict):
                value = {name: one for name, one in value.items() if name.startswith("__")}
            reduced["shape"] = shape(value)
            reduced["ids"] = dict(ids_in(value, ids))
        except ValueError:
            reduced["shape"] = "string"
    return reduced


def main():
    place = pathlib.Path(sys.argv[1])
    ids = Ids()
    scenarios = {}
    for folder in sorted(one for one in place.iterdir() if one.is_dir()):
        files = sorted(one for one in folder.iterdir() if one.suffix == ".http")
        scenarios[folder.name] = [one for one in (exchange(file, ids) for file in files) if one]
    # Of ids in answers those stay that a request names, where they come first.
    every = [one for all_of in scenarios.values() for one in all_of]
    named = set(re.findall(r"\{[a-z_]+\d+\}", json.dumps([[one["path"], one.get("asked")] for one in every])))
    seen = set()
    for one in every:
        kept = {}
        for place, name in one.pop("ids", {}).items():
            if name in named and name not in seen:
                seen.add(name)
                kept[place] = name
        if kept:
            one["ids"] = kept
    lines = []
    for name, all_of in scenarios.items():
        inner = ",\n".join("  " + json.dumps(one, separators=(",", ":"), sort_keys=True) for one in all_of)
        lines.append(json.dumps(name) + ": [\n" + inner + "\n ]")
    print("{\n " + ",\n ".join(lines) + "\n}")


if __name__ == "__main__":
    main()
