"""The tests of the client from PyPI: their register, what they share, and how they are run."""

import asyncio
import sys
import traceback

from langgraph_sdk import get_client

from world import World

TESTS = []


def test(function):
    TESTS.append(function)
    return function


def human(text, **more):
    return {"messages": [{"type": "human", "content": text, **more}]}


async def collect(stream):
    return [part async for part in stream]


async def run(arguments, example=None, tests=TESTS):
    """Runs the tests whose names contain one of the words, over SQLite or the Postgres database of an address.

    They drive the stock program, or an example with graphs of its own.
    """
    database, wanted = (arguments or ["sqlite"])[0], arguments[1:]
    failed = 0
    with World(None if database == "sqlite" else database, example) as world:
        world.process, world.url = world.serve()
        for one in tests:
            name = one.__name__.replace("_", " ")
            if wanted and not any(word in one.__name__ for word in wanted):
                continue
            try:
                await asyncio.wait_for(one(get_client(url=world.url), world), 60)
                print(f"ok    {name}", flush=True)
            except Exception as error:
                failed += 1
                print(f"FAIL  {name}: {type(error).__name__}: {str(error)[:1500]}", flush=True)
                print(traceback.format_exc(limit=-2), flush=True)
    sys.exit(1 if failed else 0)
