"""Transactions that several callers share: what belongs to one step is flushed to disk once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from enum import Enum
from typing import Any, Union

from perihelion import _native

Statement = tuple[str, Sequence[Union[None, int, float, str, bytes]]]
"""A statement with its values; placeholders are written `?1`, `?2` and so on."""

Answers = list[list[tuple[Any, ...]]]
"""The rows that each statement of a transaction returned."""

MOST_STATEMENTS = 24
"""Statements that the core sends at once; longer transactions take more round trips."""

PATIENCE = 0.002
"""Seconds that writes of a task wait on their thread for the checkpoint after them. The graph does not wait for them."""


class Kind(Enum):
    """What a transaction does."""

    READ = 0
    WRITE = 1
    JOIN = 2


class _Batch:
    """Statements of a caller on a thread, which waits until they ran."""

    def __init__(self, statements: Sequence[Statement]) -> None:
        self.statements = statements
        self.is_done = threading.Event()
        self.answers: Answers = []
        self.error: BaseException | None = None

    def result(self) -> Answers:
        if self.error is not None:
            raise self.error
        return self.answers


_Waiting = tuple[Sequence[Statement], "asyncio.Future[Answers]"]
"""Statements of a task, and its future."""


class Groups:
    """Runs the transactions of a database."""

    def __init__(self, native: _native.Database) -> None:
        self._native = native
        self._lock = threading.Lock()
        self._joining: list[_Batch] = []
        self._turns: dict[asyncio.AbstractEventLoop, list[_Waiting]] = {}

    def run(self, statements: Sequence[Statement], kind: Kind) -> Answers:
        """Runs statements on this thread, or hands them to the thread that writes next."""
        if kind is Kind.JOIN:
            return self._join(_Batch(statements))
        joined = self._take(len(statements)) if kind is Kind.WRITE else []
        if not joined:
            return self._native.run(statements, kind is Kind.WRITE)
        last = _Batch(statements)
        self._run_all([*joined, last])
        return last.result()

    def _join(self, batch: _Batch) -> Answers:
        with self._lock:
            self._joining.append(batch)
        if not batch.is_done.wait(PATIENCE):
            with self._lock:
                is_left = batch in self._joining
                if is_left:
                    self._joining.remove(batch)
            if is_left:
                return self._native.run(batch.statements, True)
            batch.is_done.wait()
        return batch.result()

    def _take(self, size: int) -> list[_Batch]:
        with self._lock:
            taken = []
            while self._joining and size + len(self._joining[0].statements) <= MOST_STATEMENTS:
                taken.append(self._joining.pop(0))
                size += len(taken[-1].statements)
            return taken

    def _run_all(self, batches: list[_Batch]) -> None:
        """Runs batches as one transaction; if it fails, each as one of its own."""
        try:
            answers = self._native.run([one for batch in batches for one in batch.statements], True)
        except BaseException as error:
            if len(batches) > 1 and isinstance(error, Exception):
                for batch in batches:
                    self._run_all([batch])
                return
            for batch in batches:
                batch.error = error
                batch.is_done.set()
            return
        for batch in batches:
            batch.answers, answers = answers[: len(batch.statements)], answers[len(batch.statements) :]
            batch.is_done.set()

    async def asubmit(self, statements: Sequence[Statement], kind: Kind) -> Answers:
        """Runs statements without blocking the running loop.

        What tasks write in one turn of the loop is one transaction. It is finished even if no task waits any longer.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answers] = loop.create_future()
        if kind is Kind.READ:
            self._submit(loop, [(statements, future)], False)
            return await future
        turn = self._turns.setdefault(loop, [])
        turn.append((statements, future))
        if len(turn) == 1:
            loop.call_soon(self._end_turn, loop)
        return await future

    def _end_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        turn = self._turns.pop(loop)
        while turn:
            count, size = 1, len(turn[0][0])
            while count < len(turn) and size + len(turn[count][0]) <= MOST_STATEMENTS:
                size += len(turn[count][0])
                count += 1
            self._submit(loop, turn[:count], True)
            del turn[:count]

    def _submit(self, loop: asyncio.AbstractEventLoop, group: list[_Waiting], writes: bool) -> None:
        """Submits batches as one transaction; if it fails, each as one of its own."""

        def resolve(answers: Answers | None, error: BaseException | None) -> None:
            if error is not None and len(group) > 1:
                for one in group:
                    self._submit(loop, [one], writes)
                return
            left = answers or []
            for statements, future in group:
                mine, left = left[: len(statements)], left[len(statements) :]
                if future.done():
                    continue
                if error is not None:
                    future.set_exception(error)
                else:
                    future.set_result(mine)

        def done(answers: Answers | None, error: BaseException | None) -> None:
            try:
                loop.call_soon_threadsafe(resolve, answers, error)
            except RuntimeError:
                pass  # The loop was closed: no task waits.

        try:
            self._native.submit([one for statements, _ in group for one in statements], writes, done)
        except Exception as error:
            resolve(None, error)
