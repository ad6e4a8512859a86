"""Charges each order once, while its process is killed at random moments.

    python charge_once.py --orders 5 --seed 1 --database agents.db

Each order runs in a process of its own, which is killed with SIGKILL after a random time and started again until the
order is shipped. The bank is a file to which each charge adds a line; like most banks it finds a charge by its key.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import tempfile
import time
from pathlib import Path
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from perihelion import NOT_DONE, PerihelionSaver, idempotency_key, once


class Bank:
    """Takes money each time it is asked to."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def charge(self, order: str, cents: int, key: str) -> str:
        receipt = f"receipt-{order}"
        time.sleep(0.01)  # The request travels.
        with self._path.open("a") as book:
            book.write(json.dumps({"order": order, "cents": cents, "key": key, "receipt": receipt}) + "\n")
        time.sleep(0.01)  # The response travels.
        return receipt

    def charges(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._path.read_text().splitlines()] if self._path.exists() else []

    def find(self, key: str) -> Any:
        """Returns the receipt of the charge with a key, or NOT_DONE."""
        return next((charge["receipt"] for charge in self.charges() if charge["key"] == key), NOT_DONE)


class Order(TypedDict):
    order: str
    cents: int
    receipt: str
    is_shipped: bool


def shop(bank: Bank, saver: PerihelionSaver) -> Any:
    # An attempt that was killed may have charged the card or not: the bank knows.
    @once(unknown=bank.find)
    def charge(order: str, cents: int) -> str:
        return bank.charge(order, cents, idempotency_key())

    def pay(state: Order) -> dict[str, Any]:
        receipt = charge(state["order"], state["cents"])
        time.sleep(0.01)  # A kill here repeats the node, not the charge.
        return {"receipt": receipt}

    graph = StateGraph(Order)
    graph.add_node("pay", pay)
    graph.add_node("ship", lambda state: {"is_shipped": True})
    graph.add_edge(START, "pay")
    graph.add_edge("pay", "ship")
    graph.add_edge("ship", END)
    return graph.compile(checkpointer=saver)


def work(book: Path, database: str, order: str) -> None:
    """Starts an order, or continues it from its last stored step."""
    with PerihelionSaver.from_conn_string(database) as saver:
        graph = shop(Bank(book), saver)
        config: Any = {"configurable": {"thread_id": order}}
        began = graph.get_state(config).next or graph.get_state(config).values
        given = None if began else {"order": order, "cents": 1999, "receipt": "", "is_shipped": False}
        if graph.invoke(given, config, durability="sync")["is_shipped"]:
            os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--orders", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--database", help="SQLite file or connection string of PostgreSQL (a temporary file)")
    options = parser.parse_args()
    dice = random.Random(options.seed)
    processes = multiprocessing.get_context("fork")
    kills = 0
    with tempfile.TemporaryDirectory() as directory:
        book = Path(directory) / "bank.jsonl"
        database = options.database or f"{directory}/agents.db"
        for number in range(options.orders):
            longest, is_done = 0.1, False
            while not is_done:
                process = processes.Process(target=work, args=(book, database, f"order-{number}"))
                process.start()
                process.join(dice.uniform(0, longest))
                if process.is_alive():
                    process.kill()
                    kills += 1
                process.join()
                is_done = process.exitcode == 0
                longest *= 1.1  # A slow machine gets there, too.
        charges = Bank(book).charges()
    twice = len(charges) - len({charge["order"] for charge in charges})
    print(f"{options.orders} orders, {kills} kills, {len(charges)} charges, {twice} charged twice")
    assert len(charges) == options.orders and twice == 0


if __name__ == "__main__":
    main()
