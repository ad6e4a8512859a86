"""The task of a graph that calls `once` or `ask`: where its journal is, and its interrupts."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import threading
import time
import uuid
import weakref
from collections import Counter
from collections.abc import Callable, Generator
from contextvars import ContextVar
from typing import Any, NoReturn, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config

from perihelion._effects import EffectSteps, Entry, Place, Started
from perihelion.errors import EffectDiverged, EffectError
from perihelion.saver import PerihelionSaver

T = TypeVar("T")

Flow = Generator[Any, Any, T]
"""Work that yields steps of the journal, seconds to wait, and functions to call; the same for both worlds."""

current_key: ContextVar[str] = ContextVar("perihelion_idempotency_key")

_PATIENCE = 30.0
"""Seconds in which the checkpoint that a task started from must be stored."""

# Counters live as long as the task: LangGraph makes a scratchpad for each, and this function with it.
_counters: weakref.WeakKeyDictionary[Callable[..., Any], dict[Any, tuple[Any, Counter[str]]]]
_counters = weakref.WeakKeyDictionary()
_counting = threading.Lock()


def new_attempt() -> str:
    return uuid.uuid4().hex


class Task:
    """The running task of a graph."""

    def __init__(self, config: RunnableConfig | None) -> None:
        self.config = config or _current_config()
        found = self.config.get("configurable", {})
        saver = found.get("__pregel_checkpointer")
        self._pad: Any = found.get("__pregel_scratchpad")
        if self._pad is None:
            raise EffectError("once and ask work only within a node of a graph; call them there")
        if not isinstance(saver, PerihelionSaver):
            raise EffectError(
                "once and ask need the journal of a PerihelionSaver; compile the graph with "
                f"checkpointer=PerihelionSaver(…), not with: {type(saver).__name__}"
            )
        if found.get("__pregel_durability") == "exit":
            raise EffectError('once and ask need stored steps; run the graph with durability="sync" or "async"')
        self.saver = saver
        self.steps = EffectSteps(saver.serde, saver._seal)
        self._thread_id, self._ns = str(found["thread_id"]), found["checkpoint_ns"]
        checkpoints = found.get("checkpoint_map") or {}
        path = self.config.get("metadata", {}).get("langgraph_path") or ("",)
        checkpoint = _checkpoint(self._ns, checkpoints)
        self._started = Started(checkpoint, checkpoints.get("", checkpoint[1]), path[0] == "__pregel_push")
        self._send = found["__pregel_send"]
        execution = getattr(found.get("__pregel_runtime"), "execution_info", None)
        self._attempt = getattr(execution, "node_attempt", 1)

    def place(self, name: str) -> Place:
        """Returns the place of the next effect of a name in this attempt at the task."""
        with _counting:
            attempts = _counters.setdefault(self._pad.get_null_resume, {})
            counter = self._pad.interrupt_counter
            # The reference keeps the ID from being reused.
            _, counts = attempts.setdefault((self._attempt, id(counter)), (counter, Counter()))
            occurrence = counts[name]
            counts[name] += 1
        return Place(self._thread_id, self._ns, name, occurrence)

    def begin(self, place: Place, wanted: Entry) -> Flow[tuple[Place, Entry]]:
        """Stores an intent, once the checkpoint that the task started from is stored; returns its entry and place."""
        deadline, pause = time.monotonic() + _PATIENCE, 0.001
        while True:
            found = yield self.steps.begin(place, self._started, wanted)
            if found is not None:
                return cast("tuple[Place, Entry]", found)
            if time.monotonic() > deadline:
                raise EffectError(
                    "the step that this task belongs to is not stored, so an effect could happen twice; give the "
                    "subgraph a checkpointer, and in an asynchronous node pass an async function to once"
                )
            yield pause
            pause = min(2 * pause, 0.05)

    def ask(self, name: str, question: Any, mark: str, is_strict: bool = True) -> Flow[Entry]:
        """Interrupts the graph with a question, unless its answer is in the journal; returns the answered entry."""
        wanted = Entry(new_attempt(), True, mark, "", len(self._pad.resume))
        place, entry = yield from self.begin(self.place(name), wanted)
        is_other = entry.fingerprint != mark
        if is_other and is_strict and (entry.is_done or self._has_answer(entry.index)):
            raise EffectDiverged(
                "the node asks another question than the one that was answered; wrap what changes between runs, such "
                f"as a model call before it, in once: {name}"
            )
        if entry.is_done:
            self._replay(entry.outcome)
            return entry
        if is_other and not self._has_answer(entry.index):
            yield self.steps.take_over(place, entry, wanted)
            entry = wanted
        answer = self._interrupt(question, entry.index, entry is wanted or entry.attempt == wanted.attempt)
        yield self.steps.finish(place, entry, answer)
        return dataclasses.replace(entry, is_done=True, outcome=answer)

    def _has_answer(self, index: int) -> bool:
        return index < len(self._pad.resume) or self._pad.get_null_resume(False) is not None

    def _replay(self, answer: Any) -> None:
        """Does what an interrupt that was answered does, without needing LangGraph's own record of the answer."""
        index = self._pad.interrupt_counter()
        if index >= len(self._pad.resume):
            self._pad.get_null_resume(True)
            self._pad.resume.append(answer)
        self._send([("__resume__", self._pad.resume[: index + 1])])

    def _interrupt(self, question: Any, index: int, is_new: bool) -> Any:
        """Interrupts at the index of a question, whatever else the node asked before; a new one has no answer yet."""
        from langgraph.types import interrupt

        self._pad.interrupt_counter()
        answers = (lambda consume=False: None) if is_new else self._pad.get_null_resume
        pad = dataclasses.replace(self._pad, interrupt_counter=lambda: index, get_null_resume=answers)
        configurable = {**self.config["configurable"], "__pregel_scratchpad": pad}
        token = var_child_runnable_config.set({**self.config, "configurable": configurable})
        try:
            return interrupt(question)
        finally:
            var_child_runnable_config.reset(token)

    def run(self, flow: Flow[T]) -> T:
        """Runs a flow on this thread."""
        try:
            action = next(flow)
            while True:
                try:
                    result = self._perform(action)
                except BaseException as error:
                    action = flow.throw(error)
                else:
                    action = flow.send(result)
        except StopIteration as end:
            return cast(T, end.value)

    async def arun(self, flow: Flow[T]) -> T:
        """Runs a flow on the running loop."""
        try:
            action = next(flow)
            while True:
                try:
                    result = await self._aperform(action)
                except BaseException as error:
                    action = flow.throw(error)
                else:
                    action = flow.send(result)
        except StopIteration as end:
            return cast(T, end.value)

    def _perform(self, action: Any) -> Any:
        if isinstance(action, float):
            return time.sleep(action)
        if callable(action):
            return action()
        return self.saver._connection.run(action)

    async def _aperform(self, action: Any) -> Any:
        if isinstance(action, float):
            return await asyncio.sleep(action)
        if not callable(action):
            return await self.saver._connection.arun(action)
        result = action()
        return await result if inspect.isawaitable(result) else result


def _current_config() -> RunnableConfig:
    config = var_child_runnable_config.get()
    if config is None:
        _refuse()
    return config


def _refuse() -> NoReturn:
    raise EffectError(
        "once and ask work only within a node of a graph; call them there, and in asynchronous nodes on Python 3.10 "
        "pass the node's config"
    )


def _checkpoint(ns: str, checkpoints: dict[str, str]) -> tuple[str, str]:
    """Returns the namespace and the ID of the checkpoint that a task started from.

    The functions of an entrypoint have a namespace within its task, and start from the checkpoint of that task.
    """
    parents = [""]
    for part in ns.split("|")[:-1]:
        parents.append(f"{parents[-1]}|{part}" if parents[-1] else part)
    found = [parent for parent in parents if parent in checkpoints]
    checkpoint_id = checkpoints[found[-1]] if found else ""
    return next((parent for parent in found if checkpoints[parent] == checkpoint_id), ""), checkpoint_id
