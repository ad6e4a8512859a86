"""Answers the server: loads graphs, runs them, edits their threads. It ends with its socket."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import socket
import sys
import threading
import time
import traceback
from typing import Any

from perihelion.host import _answers, _project, _runs, _wire


class Server:
    def __init__(self, writer: _wire.Writer) -> None:
        self.writer = writer
        self.project: _project.Project | None = None
        self.calls: dict[int, asyncio.Task[None]] = {}
        self.proceed: dict[int, asyncio.Semaphore] = {}

    async def serve(self, reader: asyncio.StreamReader) -> None:
        while True:
            order = await _wire.read(reader)
            call = order["call"]
            match order["op"]:
                case "next":
                    if call in self.proceed:
                        self.proceed[call].release()
                case "cancel":
                    if call in self.calls:
                        self.calls[call].cancel()
                    else:
                        await self.writer.send({"call": call, **_wire.describe_error(asyncio.CancelledError())})
                case _:
                    self.proceed[call] = asyncio.Semaphore(0)
                    self.calls[call] = asyncio.create_task(self._answer(call, order))
                    # A task that is cancelled before its first step answers nothing.
                    await asyncio.sleep(0)

    async def _answer(self, call: int, order: dict[str, Any]) -> None:
        async def send(frame: dict[str, Any]) -> None:
            await self.writer.send({"call": call, **frame})

        try:
            await self._perform(call, order, send)
        except BaseException as error:
            # Also a cancellation, and an exit: they end this call alone.
            await send(_wire.describe_error(error))
        finally:
            self.calls.pop(call, None)
            self.proceed.pop(call, None)

    async def _perform(self, call: int, order: dict[str, Any], send: _runs.Sender) -> None:
        if order["op"] == "load":
            try:
                self.project, loaded = await _project.load(order)
            except BaseException:
                traceback.print_exc()
                raise
            return await send(loaded)
        if self.project is None:
            raise RuntimeError("no graphs are loaded")
        match order["op"]:
            case "run":
                await _runs.run(self.project, order, send, self.proceed[call])
            case "update":
                await send(await _runs.update(self.project, order))
            case op if op in _answers.ANSWERS:
                await send({"kind": "answer", "answer": await _answers.ANSWERS[op](self.project, order)})
            case unknown:
                raise ValueError(f"unknown operation: {unknown}")


async def _serve(connection: socket.socket) -> None:
    reader, writer = await asyncio.open_unix_connection(sock=connection, limit=1 << 20)
    try:
        await Server(_wire.Writer(writer)).serve(reader)
    except (asyncio.IncompleteReadError, ConnectionError):
        # The server is gone, and whoever follows continues from the database.
        pass


def main() -> None:
    """Serves the socket that is standard input; output of graphs goes to standard error."""
    connection = socket.socket(fileno=os.dup(0))
    connection.setblocking(False)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    # A process that a node forks must not hold the socket open when this one ends.
    os.register_at_fork(after_in_child=lambda: _leave(connection))
    threading.Thread(target=_end_with, args=(connection.fileno(),), daemon=True).start()
    loop = asyncio.new_event_loop()
    serving = loop.create_task(_serve_and_end(connection))
    while True:
        # The exit of a node leaves the loop on its way to the call, which answers with it. Nobody interrupts this process.
        with contextlib.suppress(SystemExit, KeyboardInterrupt):
            loop.run_until_complete(serving)


def _leave(connection: socket.socket) -> None:
    """Closes a socket, once: in a process that a forked one forks, its number can be that of another file."""
    if connection.fileno() >= 0:
        os.close(connection.detach())


def _end_with(socket_number: int) -> None:
    """Ends the process when the server is gone, also while a node blocks the event loop."""
    poll = select.poll()
    poll.register(socket_number, select.POLLRDHUP)
    poll.poll()
    os._exit(0)


BLOCKED = 5
"""Seconds after which a blocked event loop is reported."""


def _watch(loop: asyncio.AbstractEventLoop, looped: int) -> None:
    """Reports where the event loop of a thread is blocked, on standard error."""
    while True:
        turn = threading.Event()
        loop.call_soon_threadsafe(turn.set)
        if not turn.wait(BLOCKED):
            stack = "".join(traceback.format_stack(sys._current_frames().get(looped)))
            why = "the event loop of the graphs is blocked; write blocking nodes as ordinary functions"
            print(f"{why}:\n{stack}", file=sys.stderr, flush=True)
            turn.wait()
        time.sleep(1)


async def _serve_and_end(connection: socket.socket) -> None:
    watched = (asyncio.get_running_loop(), threading.get_ident())
    threading.Thread(target=_watch, args=watched, daemon=True).start()
    await _serve(connection)
    sys.stderr.flush()
    # Threads in which nodes still run must not keep the process.
    os._exit(0)
