"""Sets what was measured beside the goals: compare.py FILE."""

import json
import sys

rows = [json.loads(line) for line in open(sys.argv[1])]


def found(server, what, **more):
    return next(
        (row for row in rows if row["server"] == server and row["what"] == what and more.items() <= row.items()), None)


theirs = {row["server"]: row["per_second"] for row in rows if row["what"] == "runs" and row["server"].startswith("reference")}
for server, runs in theirs.items():
    print(f"{server}: {runs} runs a second")
for server in dict.fromkeys(row["server"] for row in rows if row["server"] not in theirs):
    runs = found(server, "runs")["per_second"]
    goals = [(f"runs a second ({runs}), times those of \"{name}\" ({other})", runs / other, 10, runs / other >= 10)
             for name, other in theirs.items()]
    if idle := found(server, "idle streams"):
        goals.append((f"KB of one of {idle['streams']} idle streams", idle["kb_each"], 25, idle["kb_each"] <= 25))
    if active := found(server, "active streams"):
        first = active["first_event_ms"]["p99"]
        beside = f"first event beside {active['streams']} active and {active['idle']} idle streams, p99 in ms"
        goals.append((beside, first, 50, first <= 50))
        goals.append(("active streams that were heard whole", active["whole"], active["streams"],
                      active["whole"] == active["streams"]))
    print(f"\n{server}")
    for name, value, goal, is_met in goals:
        print(f"  {name}: {value:.1f}; the goal is {goal}: {'met' if is_met else 'missed'}")
