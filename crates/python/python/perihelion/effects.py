"""`once` and `ask`: effects and questions of nodes that are journaled, so a node that runs again does not repeat them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Literal, ParamSpec, TypeVar, overload

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp

from perihelion._effects import Entry, Place, fingerprint
from perihelion._task import Flow, Task, current_key, new_attempt
from perihelion.errors import EffectDiverged, EffectError, OutcomeUnknown

P = ParamSpec("P")
R = TypeVar("R")


class _NotDone:
    def __repr__(self) -> str:
        return "NOT_DONE"


NOT_DONE: Any = _NotDone()
"""What a function passed as `unknown` returns if the effect did not happen."""

Unknown = Literal["raise", "ask", "retry"] | Callable[[str], Any]


def idempotency_key() -> str:
    """Returns the key of the effect that is running, the same for every attempt. Call it within the function of `once`."""
    try:
        return current_key.get()
    except LookupError:
        raise EffectError("idempotency_key works only within a function that once runs; call it there") from None


@overload
def once(function: Callable[P, R], /) -> Callable[P, R]: ...


@overload
def once(
    *,
    name: str | None = None,
    unknown: Unknown = "raise",
    retry_on: type[Exception] | tuple[type[Exception], ...] = (),
    config: RunnableConfig | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


@overload
def once(name: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...


def once(first: Any = None, /, *args: Any, **options: Any) -> Any:
    """Runs a function at most once for a task of a graph, and returns its recorded outcome when the node runs again.

    Decorate a function, or call one by name. Within the task the name and the number of the call identify the effect;
    calls that run in parallel need names of their own. An async function is awaited.

    An intent is stored before the function runs, its outcome afterwards. If the process ends in between, or the
    function raises an error, the outcome is unknown, and `unknown` decides what the next run of the node does.

    Args:
        name: The name of the effect; by default that of the function.
        unknown: `"raise"` raises `OutcomeUnknown`. `"ask"` interrupts the graph with a question, which is answered by
            `{"action": "retry"}` or `{"action": "record", "outcome": …}`. `"retry"` calls the function again. A
            function is called with the idempotency key, and returns the outcome or `NOT_DONE`.
        retry_on: Errors that prove that nothing happened: the next run of the node calls the function again.
        config: The config of the node; needed in asynchronous nodes on Python 3.10.

    Example:
        >>> @once(unknown="ask")
        ... def charge(order: str, cents: int) -> str:
        ...     return bank.charge(order, cents, idempotency_key=idempotency_key())
        >>> def pay(state):
        ...     return {"receipt": charge(state["order"], state["cents"])}
        >>> def pay_by_name(state):
        ...     return {"receipt": once("charge", bank.charge, state["order"], state["cents"])}
    """
    if isinstance(first, str):
        return _Effect(first)(args[0])(*args[1:], **options)
    if first is not None:
        return _Effect(None)(first)
    name, config = options.pop("name", None), options.pop("config", None)
    return _Effect(name, config=config, **options)


class _Effect:
    """How a function is run once."""

    def __init__(
        self,
        name: str | None,
        *,
        unknown: Unknown = "raise",
        retry_on: type[Exception] | tuple[type[Exception], ...] = (),
        config: RunnableConfig | None = None,
    ) -> None:
        if not callable(unknown) and unknown not in ("raise", "ask", "retry"):
            raise ValueError(f"unknown must be raise, ask, retry or a function: {unknown}")
        self.name = name
        self.unknown = unknown
        self.retry_on = retry_on
        self.config = config

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        name = self.name or str(getattr(function, "__qualname__", type(function).__qualname__))
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def acall(*args: Any, **kwargs: Any) -> Any:
                task = Task(self.config)
                return await task.arun(self._flow(task, name, function, args, kwargs))

            return acall

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            task = Task(self.config)
            return task.run(self._flow(task, name, function, args, kwargs))

        return call

    def _flow(self, task: Task, name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Flow[Any]:
        place = task.place(name)
        wanted = Entry(new_attempt(), False, fingerprint((args, kwargs)), "", 0)
        while True:
            place, entry = yield from task.begin(place, wanted)
            if entry.is_question or (entry.fingerprint and entry.fingerprint != wanted.fingerprint):
                raise EffectDiverged(
                    "the node calls a function with other arguments than the journal has; wrap what changes between "
                    f"runs in once as well, and give parallel calls names of their own: {name}"
                )
            if entry.is_done:
                return entry.outcome
            if entry.attempt == wanted.attempt:
                break
            yield from self._settle(task, place, entry, wanted)
        return (yield from self._perform(task, place, wanted, functools.partial(function, *args, **kwargs)))

    def _perform(self, task: Task, place: Place, entry: Entry, call: Callable[[], Any]) -> Flow[Any]:
        token = current_key.set(place.key)
        try:
            outcome = yield call
        except GraphBubbleUp as error:
            yield task.steps.note(place, entry, "an interrupt")
            raise EffectError(f"a function that once runs must not interrupt; ask before it: {place.name}") from error
        except Exception as error:
            if isinstance(error, self.retry_on):
                yield task.steps.withdraw(place, entry)
            else:
                yield task.steps.note(place, entry, f"{type(error).__name__}: {error}")
            raise
        finally:
            current_key.reset(token)
        try:
            is_mine = yield task.steps.finish(place, entry, outcome)
        except TypeError as error:
            yield task.steps.note(place, entry, f"it happened, but its outcome cannot be stored: {error}")
            raise
        if not is_mine:
            raise EffectError(f"an effect was settled while it ran; its outcome is not recorded: {place.name}")
        return outcome

    def _settle(self, task: Task, place: Place, entry: Entry, wanted: Entry) -> Flow[None]:
        """Decides about an attempt without an outcome."""
        if callable(self.unknown):
            found = yield functools.partial(self.unknown, place.key)
        elif self.unknown == "ask":
            found = yield from self._asked(task, place, entry)
        elif self.unknown == "retry":
            found = NOT_DONE
        else:
            raise OutcomeUnknown(place.name, place.key, entry.note)
        if found is NOT_DONE:
            yield task.steps.take_over(place, entry, wanted)
        else:
            yield task.steps.finish(place, entry, found)

    def _asked(self, task: Task, place: Place, entry: Entry) -> Flow[Any]:
        """Asks about an attempt until an answer says what to do; an answer about another attempt does not count."""
        mark = fingerprint([place.key, entry.attempt])
        question: dict[str, Any] = {
            "type": "outcome_unknown",
            "effect": place.name,
            "key": place.key,
            "error": entry.note or None,
            "answers": [{"action": "retry"}, {"action": "record", "outcome": "…"}],
        }
        while True:
            asked = yield from task.ask(f"{place.name} #{place.occurrence}: outcome", question, mark, is_strict=False)
            if asked.fingerprint != mark:
                continue
            match asked.outcome:
                case "retry" | {"action": "retry"}:
                    return NOT_DONE
                case {"action": "record", "outcome": outcome}:
                    return outcome
            question = {**question, "invalid_answer": asked.outcome}


def _question(task: Task, question: Any, name: str) -> Flow[Any]:
    entry = yield from task.ask(name, question, fingerprint([question]))
    return entry.outcome


def ask(question: Any, *, name: str = "ask", config: RunnableConfig | None = None) -> Any:
    """Interrupts the graph with a question and returns its answer, as LangGraph's `interrupt`, with a journal.

    The answer is recorded under the name and the number of the call, so a node that runs again gets it, also after a
    crash, and also if it asks in another order. If the question changed, `EffectDiverged` is raised instead of using
    the answer to another question.

    Args:
        question: What LangGraph shows to clients: anything that can be stored.
        name: Distinguishes the questions of a node.
        config: The config of the node; needed in asynchronous nodes on Python 3.10.
    """
    task = Task(config)
    return task.run(_question(task, question, name))


def aask(question: Any, *, name: str = "ask", config: RunnableConfig | None = None) -> Awaitable[Any]:
    """Does what `ask` does, without blocking the event loop."""
    task = Task(config)
    return task.arun(_question(task, question, name))
