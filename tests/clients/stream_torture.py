"""Kills servers and cuts connections under live streams: stream_torture.py sqlite|URL KILLS [SEED].

Two servers share a database. Clients begin runs whose answers come word by word, and follow each by `Last-Event-ID` on
whichever server is there; meanwhile servers are killed, one after another, and clients hang up. When a run has ended,
what its client heard over all connections is compared with a replay from its beginning: every event once, in order,
under the same id with the same data. Any difference is a gap or a duplicate, and fails, as does a run that does not end
well.
"""

import http.client
import itertools
import json
import os
import random
import sys
import threading
import time
import urllib.parse

from world import World

CLIENTS = 6
PATIENCE = 120


class Servers:
    """Those that live, so that one of them can be asked."""

    def __init__(self, world):
        self.world, self.lock, self.alive = world, threading.Lock(), []
        for _ in range(2):
            self.add()

    def add(self):
        process, url = self.world.serve()
        with self.lock:
            self.alive.append((process, urllib.parse.urlsplit(url).netloc))

    def kill(self, which):
        with self.lock:
            process, _ = self.alive.pop(which % len(self.alive))
        self.world.kill(process)

    def some(self, draw):
        with self.lock:
            return draw.choice(self.alive)[1]


def asked(servers, draw, method, path, body=None):
    """Asks until somebody answers, and returns the status and the body."""
    end = time.monotonic() + PATIENCE
    while True:
        connection = http.client.HTTPConnection(servers.some(draw), timeout=20)
        try:
            connection.request(method, path, body and json.dumps(body), {"content-type": "application/json"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null")
        except (OSError, http.client.HTTPException):
            if time.monotonic() > end:
                raise
            time.sleep(0.02)
        finally:
            connection.close()


class Cut(Exception):
    """A connection broke, or nobody answered: the stream may have more."""


def lines(answer):
    """Reads lines of a body in chunks; unlike the answer's own iteration, it raises where the last chunk is missing."""
    rest = b""
    while more := answer.read1(65_536):
        *whole, rest = (rest + more).split(b"\n")
        yield from whole


def heard(servers, draw, path, last, most):
    """Reads events of one connection until it ends or has given enough of them; of one that broke it says so."""
    connection = http.client.HTTPConnection(servers.some(draw), timeout=20)
    try:
        connection.request("GET", path, headers={"last-event-id": last})
        answer = connection.getresponse()
        if answer.status != 200:
            raise Cut
        event = {}
        for line in lines(answer):
            text = line.decode()
            if not text:
                if "id" in event:
                    yield event["id"], event["event"], event["data"]
                    most -= 1
                    if most == 0:
                        return
                event = {}
            elif not text.startswith(":"):
                name, _, value = text.partition(": ")
                event[name] = value
    except (OSError, http.client.HTTPException) as error:
        raise Cut from error
    finally:
        connection.close()


def follow(servers, draw, tally, stop):
    while not stop.is_set():
        _, thread = asked(servers, draw, "POST", "/threads", {})
        base = f"/threads/{thread['thread_id']}/runs"
        body = {
            "assistant_id": "swarm", "input": {"messages": [{"role": "user", "content": "slow answer, please"}]},
            "stream_mode": ["values", "updates", "messages-tuple", "tasks"],
        }
        _, run = asked(servers, draw, "POST", base, body)
        place, got, last, end = f"{base}/{run['run_id']}", [], "-1", time.monotonic() + PATIENCE
        while True:
            before, is_cut = len(got), False
            try:
                for event in heard(servers, draw, f"{place}/stream", last, draw.randint(1, 40)):
                    got.append(event)
                    last = event[0]
            except Cut:
                is_cut = True
            tally["connections"] += 1
            _, now = asked(servers, draw, "GET", place)
            # Only a stream that ended by itself says that there is nothing more.
            if now["status"] not in ("pending", "running") and len(got) == before and not is_cut:
                break
            if time.monotonic() > end:
                tally["stuck"] += 1
                break
        replay = []
        while not replay:
            try:
                replay = list(heard(servers, draw, f"{place}/stream", "-1", -1))
            except Cut:
                pass
        ids = [event[0] for event in got]
        tally["events"] += len(got)
        tally["duplicates"] += len(ids) - len(set(ids))
        tally["gaps"] += len({event[0] for event in replay} - set(ids))
        tally["other"] += sum(1 for event in got if event not in replay)
        tally["disordered"] += got != replay and sorted(ids) == sorted(event[0] for event in replay)
        if got != replay:
            told = next((pair for pair in itertools.zip_longest(got, replay) if pair[0] != pair[1]), None)
            print(f"{place} differs first in: {told}", file=sys.stderr)
        tally["runs"] += 1
        if now["status"] != "success":
            _, why = asked(servers, draw, "GET", f"{place}/join")
            print(f"{place} ended as {now['status']}: {json.dumps(why)[:400]}", file=sys.stderr, flush=True)
            tally["not ended well"] += 1


def main(database, kills, seed):
    draw = random.Random(seed)
    tally = dict.fromkeys(
        ["runs", "connections", "events", "gaps", "duplicates", "other", "disordered", "stuck", "not ended well"], 0)
    stop = threading.Event()
    # Kills come so fast that one run may see ten of them in a row, which is no fault of its thread's.
    os.environ["PERIHELION_WORKER_MAX_CRASHES"] = "1000000"
    with World(None if database == "sqlite" else database) as world:
        servers = Servers(world)
        clients = [
            threading.Thread(target=follow, args=(servers, random.Random(f"{seed}/{number}"), tally, stop))
            for number in range(CLIENTS)
        ]
        for client in clients:
            client.start()
        for number in range(kills):
            time.sleep(draw.uniform(0.3, 1.5))
            servers.add()
            servers.kill(draw.randrange(3))
            if number % 50 == 49:
                print(f"{number + 1} kills: {tally}", flush=True)
        stop.set()
        for client in clients:
            client.join()
    print(json.dumps({"database": database.split(":")[0], "kills": kills, "seed": seed, **tally}))
    wrong = [tally[name] for name in ("gaps", "duplicates", "other", "disordered", "stuck", "not ended well")]
    return 1 if any(wrong) or not tally["runs"] else 0


if __name__ == "__main__":
    where, count, *more = sys.argv[1:]
    sys.exit(main(where, int(count), int(more[0]) if more else 1))
