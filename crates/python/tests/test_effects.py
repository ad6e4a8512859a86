"""Effects of nodes happen once, whatever ends the process or the node."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from graphs import config, rows
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, RetryPolicy, Send
from perihelion import (
    NOT_DONE,
    EffectDiverged,
    EffectError,
    OutcomeUnknown,
    PerihelionSaver,
    _effects,
    aask,
    ask,
    idempotency_key,
    once,
)


class Crash(BaseException):
    """Ends a node as the end of its process does: nothing after it runs."""


class State(TypedDict, total=False):
    order: str
    results: Annotated[list[Any], lambda old, new: old + new]


class Bank:
    """Counts charges; what is in `endings` happens after the next ones."""

    def __init__(self, *endings: BaseException | None) -> None:
        self.endings = list(endings)
        self.keys: list[str] = []

    def charge(self, cents: int = 5) -> str:
        self.keys.append(idempotency_key())
        ending = self.endings.pop(0) if self.endings else None
        if ending is not None:
            raise ending
        return f"receipt {len(self.keys)} for {cents}"

    async def acharge(self, cents: int = 5) -> str:
        await asyncio.sleep(0)
        return self.charge(cents)


@pytest.fixture
def saver(address: str) -> Any:
    with PerihelionSaver.from_conn_string(address) as saver:
        yield saver


def graph(saver: Any, node: Callable[..., Any], **options: Any) -> Any:
    built = StateGraph(State)
    built.add_node("node", node, **options)
    built.add_edge(START, "node")
    return built.compile(checkpointer=saver)


def run(built: Any, given: Any = None) -> Any:
    return built.invoke(given, config(), durability="sync")


def test_an_outcome_whose_commit_lost_its_connection_is_recorded(saver: PerihelionSaver) -> None:
    bank, groups, finish = Bank(), saver._connection._groups, _effects._FINISH
    transact = groups.run

    def twice(batch: Any, kind: Any) -> Any:
        """As the core does where a connection is lost before the answer to COMMIT."""
        if any(sql == finish for sql, _ in batch):
            transact(batch, kind)
        return transact(batch, kind)

    groups.run = twice  # type: ignore[method-assign]
    built = graph(saver, lambda state: {"results": [once("charge", bank.charge)]})
    assert run(built, {"order": "a"})["results"] == ["receipt 1 for 5"]
    assert [effect.is_done for effect in saver.effects("t")] == [True]


def crashed(built: Any, given: Any) -> None:
    with pytest.raises(Crash):
        run(built, given)


def outcome(node: Any) -> Any:
    return lambda state: {"results": [node(state)]}


def test_a_node_that_runs_again_gets_the_recorded_outcome(saver: PerihelionSaver) -> None:
    bank, crashes = Bank(), [Crash()]

    def node(state: State) -> Any:
        receipts = [once("charge", bank.charge, cents) for cents in (1, 2)]
        if crashes:
            raise crashes.pop()
        return {"results": receipts}

    built = graph(saver, node)
    crashed(built, {"order": "a"})
    assert run(built)["results"] == ["receipt 1 for 1", "receipt 2 for 2"]
    assert len(set(bank.keys)) == 2
    assert [(one.name, one.outcome) for one in saver.effects("t")] == [
        ("charge", "receipt 1 for 1"),
        ("charge", "receipt 2 for 2"),
    ]


def test_another_step_and_another_thread_have_effects_of_their_own(saver: PerihelionSaver) -> None:
    bank = Bank()
    built = graph(saver, outcome(lambda state: once("charge", bank.charge)))
    for thread in ("t", "t", "u"):
        built.invoke({"order": "a"}, config(thread))
    assert len(set(bank.keys)) == 3


def test_an_unknown_outcome_is_an_error_until_a_person_settles_it(saver: PerihelionSaver) -> None:
    bank = Bank(Crash(), Crash())
    built = graph(saver, outcome(lambda state: once("charge", bank.charge)))
    crashed(built, {"order": "a"})
    with pytest.raises(OutcomeUnknown, match="settle") as unknown:
        run(built)
    assert len(bank.keys) == 1
    saver.withdraw("t", unknown.value.key)
    crashed(built, None)
    with pytest.raises(KeyError):
        saver.settle("t", "another key", 1)
    saver.settle("t", unknown.value.key, "by hand")
    assert run(built)["results"] == ["by hand"]
    assert bank.keys == [unknown.value.key] * 2


def test_an_error_leaves_the_outcome_unknown_and_is_not_retried(saver: PerihelionSaver) -> None:
    bank = Bank(ConnectionError("reset by the bank"))
    node = outcome(lambda state: once("charge", bank.charge))
    built = graph(saver, node, retry_policy=RetryPolicy(initial_interval=0.01, jitter=False))
    with pytest.raises(OutcomeUnknown, match="reset by the bank"):
        run(built, {"order": "a"})
    assert len(bank.keys) == 1


def test_an_error_that_proves_that_nothing_happened_is_retried(saver: PerihelionSaver) -> None:
    bank = Bank(ConnectionRefusedError(), ConnectionRefusedError())
    charge = once(name="charge", retry_on=ConnectionRefusedError)(bank.charge)
    policy = RetryPolicy(initial_interval=0.01, jitter=False, max_attempts=5)

    def node(state: State) -> Any:
        return {"results": [once("first", str, 1), charge(), once("first", str, 2)]}

    assert run(graph(saver, node, retry_policy=policy), {"order": "a"})["results"] == ["1", "receipt 3 for 5", "2"]
    assert len(set(bank.keys)) == 1


def test_an_unknown_outcome_is_asked_for(saver: PerihelionSaver) -> None:
    bank = Bank(Crash(), Crash(), None)
    built = graph(saver, outcome(lambda state: once(name="charge", unknown="ask")(bank.charge)()))
    crashed(built, {"order": "a"})
    (question,) = run(built)["__interrupt__"]
    assert question.value["type"] == "outcome_unknown" and question.value["key"] == bank.keys[0]
    (question,) = run(built, Command(resume="what?"))["__interrupt__"]
    assert question.value["invalid_answer"] == "what?"
    crashed(built, Command(resume={"action": "retry"}))
    # The answer was about the first attempt: the second one is asked about, too.
    assert run(built)["__interrupt__"]
    assert len(bank.keys) == 2
    result = run(built, Command(resume={"action": "record", "outcome": "found"}))
    assert result["results"] == ["found"] and len(bank.keys) == 2


def test_an_unknown_outcome_is_looked_up_or_repeated(saver: PerihelionSaver) -> None:
    bank = Bank(Crash(), Crash())
    found = iter([NOT_DONE, "found"])
    looked = graph(saver, outcome(lambda state: once(name="charge", unknown=lambda key: next(found))(bank.charge)()))
    crashed(looked, {"order": "a"})
    crashed(looked, None)
    assert run(looked)["results"] == ["found"] and len(bank.keys) == 2
    bank = Bank(Crash())
    repeated = graph(saver, outcome(lambda state: once(name="charge", unknown="retry")(bank.charge)()))
    crashed(repeated, {"order": "b"})
    assert run(repeated)["results"][-1] == "receipt 2 for 5"


def test_other_arguments_than_before_are_refused(saver: PerihelionSaver) -> None:
    bank, cents, crashes = Bank(), iter([1, 2]), [Crash()]

    def node(state: State) -> Any:
        receipt = once("charge", bank.charge, next(cents))
        if crashes:
            raise crashes.pop()
        return {"results": [receipt]}

    built = graph(saver, node)
    crashed(built, {"order": "a"})
    with pytest.raises(EffectDiverged, match="other arguments"):
        run(built)


async def test_asynchronous_nodes_have_the_same_guarantees(saver: PerihelionSaver) -> None:
    bank, crashes = Bank(), [Crash()]
    charge = once(unknown="ask")(bank.acharge)

    async def node(state: State, config: RunnableConfig) -> Any:
        calls = (once(name=f"charge {i}", config=config)(bank.acharge)(i) for i in range(4))
        receipts = await asyncio.gather(*calls)
        answer = await aask("Continue?", config=config)
        if crashes:
            raise crashes.pop()
        return {"results": [*receipts, answer]}

    built = graph(saver, node)
    assert (await built.ainvoke({"order": "a"}, config(), durability="async"))["__interrupt__"]
    with pytest.raises(Crash):
        await built.ainvoke(Command(resume="yes"), config())
    result = await built.ainvoke(None, config())
    assert result["results"][-1] == "yes" and len(result["results"]) == 5 and len(set(bank.keys)) == len(bank.keys) == 4
    with pytest.raises(EffectError, match="within a node"):
        await charge()


def test_tasks_of_subgraphs_sends_and_functions_have_effects(saver: PerihelionSaver) -> None:
    bank, crashes = Bank(), [Crash(), Crash()]

    def node(state: Any) -> Any:
        receipt = once("charge", bank.charge, state["order"])
        if crashes and state["order"] == 1:
            raise crashes.pop()
        return {"results": [receipt]}

    inner = StateGraph(State)
    inner.add_node("node", node)
    inner.add_conditional_edges(START, lambda state: [Send("node", {"order": i}) for i in range(3)])
    built = StateGraph(State)
    built.add_node("inner", inner.compile())
    built.add_edge(START, "inner")
    outer = built.compile(checkpointer=saver)
    crashed(outer, {"order": "a"})
    crashed(outer, None)
    assert len(run(outer)["results"]) == 3
    assert len(bank.keys) == len(set(bank.keys)) == 3

    crashes.append(Crash())

    @task
    def pay(cents: int) -> str:
        return once("charge", bank.charge, cents)

    @entrypoint(checkpointer=saver)
    def flow(given: int) -> str:
        paid = pay(given).result()
        kept = once("note", bank.charge, 1)
        if crashes:
            raise crashes.pop()
        return f"{paid}, {kept}"

    with pytest.raises(Crash):
        flow.invoke(7, config("f"), durability="sync")
    assert flow.invoke(None, config("f")) == "receipt 4 for 7, receipt 5 for 1"


def test_answers_survive_a_crash_and_belong_to_their_question(saver: PerihelionSaver) -> None:
    order, crashes = ["name", "age"], []

    def node(state: State) -> Any:
        answers = {name: ask(f"Your {name}?", name=name) for name in order}
        if crashes:
            raise crashes.pop()
        return {"results": [answers]}

    built = graph(saver, node)
    assert run(built, {"order": "a"})["__interrupt__"][0].value == "Your name?"
    assert run(built)["__interrupt__"][0].value == "Your name?"
    assert run(built, Command(resume="Ada"))["__interrupt__"][0].value == "Your age?"
    order.reverse()
    crashes.append(Crash())
    crashed(built, Command(resume=36))
    assert run(built)["results"] == [{"age": 36, "name": "Ada"}]
    assert [one.is_question for one in saver.effects("t")] == [True, True]


def test_an_answer_to_another_question_is_not_used(saver: PerihelionSaver) -> None:
    drafts = iter("abcc")
    built = graph(saver, outcome(lambda state: ask(f"Send {next(drafts)}?")))
    assert run(built, {"order": "a"})["__interrupt__"][0].value == "Send a?"
    assert run(built)["__interrupt__"][0].value == "Send b?"
    with pytest.raises(EffectDiverged, match="another question"):
        run(built, Command(resume="yes"))


def test_a_question_that_was_not_asked_yet_takes_no_answer(saver: PerihelionSaver) -> None:
    crashes = [Crash()]

    def node(state: State) -> Any:
        first = ask("first?")
        if crashes:
            raise crashes.pop()
        return {"results": [first, ask("second?")]}

    built = graph(saver, node)
    run(built, {"order": "a"})
    crashed(built, Command(resume=1))
    assert run(built)["__interrupt__"][0].value == "second?"
    assert run(built, Command(resume=2))["results"] == [1, 2]


def test_an_effect_waits_until_its_step_is_stored(saver: PerihelionSaver, monkeypatch: pytest.MonkeyPatch) -> None:
    put, stored, may_store = PerihelionSaver.put, [], threading.Event()

    def late(self: PerihelionSaver, *args: Any) -> Any:
        may_store.wait(10)
        stored.append(args[1]["id"])
        return put(self, *args)

    monkeypatch.setattr(PerihelionSaver, "put", late)
    threading.Timer(0.2, may_store.set).start()
    built = graph(saver, outcome(lambda state: once("look", lambda: list(stored))))
    result = built.invoke({"order": "a"}, config(), durability="async")
    assert result["results"][0], "the effect ran before its step was stored"


def test_two_processes_that_run_one_task_have_one_effect(saver: PerihelionSaver) -> None:
    bank, begun, may_end = Bank(), threading.Event(), threading.Event()

    def slow() -> str:
        begun.set()
        assert may_end.wait(30)
        return bank.charge()

    built = graph(saver, outcome(lambda state: once("charge", slow)))
    first: dict[str, Any] = {}
    runner = threading.Thread(target=lambda: first.update(run(built, {"order": "a"})))
    runner.start()
    assert begun.wait(30)
    with pytest.raises(OutcomeUnknown):
        run(built)
    may_end.set()
    runner.join()
    assert first["results"] == ["receipt 1 for 5"] and len(bank.keys) == 1


def test_what_cannot_be_journaled_is_refused(saver: PerihelionSaver) -> None:
    bank = Bank()
    node = outcome(lambda state: once("charge", bank.charge))
    with pytest.raises(EffectError, match="PerihelionSaver"):
        run(graph(InMemorySaver(), node), {"order": "a"})
    with pytest.raises(EffectError, match="durability"):
        graph(saver, node).invoke({"order": "a"}, config(), durability="exit")
    with pytest.raises(EffectError, match="within a node"):
        once("charge", bank.charge)
    with pytest.raises(EffectError, match="must not interrupt"):
        run(graph(saver, outcome(lambda state: once("asks", ask, "Sure?"))), {"order": "a"})
    with pytest.raises(ValueError, match="unknown must be"):
        once(unknown="perhaps")  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        run(graph(saver, outcome(lambda state: once("lock", threading.Lock))), {"order": "b"})
    assert not bank.keys


def test_effects_are_copied_pruned_and_deleted_with_their_thread(saver: PerihelionSaver) -> None:
    bank, crashes = Bank(), [Crash()]

    def node(state: State) -> Any:
        receipt = once("charge", bank.charge)
        if crashes:
            raise crashes.pop()
        return {"results": [receipt]}

    built = graph(saver, node)
    crashed(built, {"order": "a"})
    saver.copy_thread("t", "u")
    assert built.invoke(None, config("u"))["results"] == run(built)["results"] == ["receipt 1 for 5"]
    assert saver.effects("t") and saver.effects("u")
    saver.prune(["t"])
    saver.delete_thread("u")
    assert not rows(saver, "effects")


def test_an_encrypted_journal_shows_nothing(tmp_path: Path) -> None:
    path = tmp_path / "agents.db"
    with PerihelionSaver.from_conn_string(str(path), encryption_key=b"k" * 32) as saver:
        run(graph(saver, outcome(lambda state: once("tell", lambda: "a secret outcome"))), {"order": "a"})
        assert saver.effects("t")[0].outcome == "a secret outcome"
    assert b"a secret" not in path.read_bytes()


@pytest.mark.timeout(300)
def test_the_example_charges_once_under_kills(address: str) -> None:
    if address == ":memory:":
        pytest.skip("memory does not survive a kill")
    example = Path(__file__).parents[1] / "examples/charge_once.py"
    command = [sys.executable, str(example), "--orders", "4", "--seed", "7", "--database", address]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "4 charges, 0 charged twice" in done.stdout


def test_a_run_that_is_resumed_with_the_id_of_its_checkpoint_finds_its_effects(saver: PerihelionSaver) -> None:
    bank, crashes = Bank(), [Crash(), Crash()]

    def node(state: State) -> Any:
        receipt = once("charge", bank.charge)
        answer = ask("Send it?")
        if crashes:
            raise crashes.pop()
        return {"results": [receipt, answer]}

    built = graph(saver, node)
    assert run(built, {"order": "a"})["__interrupt__"]
    with pytest.raises(Crash):
        built.invoke(Command(resume="yes"), built.get_state(config()).config, durability="sync")
    for _ in range(2):
        at = built.get_state(config()).config
        if crashes:
            with pytest.raises(Crash):
                built.invoke(None, at, durability="sync")
    assert built.invoke(None, at, durability="sync")["results"] == ["receipt 1 for 5", "yes"]
    assert len(bank.keys) == 1
    # The step is complete now: time travel has effects of its own in the new tasks that LangGraph makes, and older versions make none.
    tasks = {one.checkpoint_ns for one in saver.effects("t")}
    built.invoke(None, at, durability="sync")
    assert len(bank.keys) == len({one.checkpoint_ns for one in saver.effects("t")} - tasks) + 1


def test_effects_of_sent_tasks_are_not_mistaken_after_a_fork(saver: PerihelionSaver) -> None:
    bank, crashes = Bank(), [Crash()]

    def node(state: Any) -> Any:
        receipt = once("charge", bank.charge)
        if crashes and state["order"] == 1:
            raise crashes.pop()
        return {"results": [receipt]}

    built = StateGraph(State)
    built.add_node("node", node)
    built.add_conditional_edges(START, lambda state: [Send("node", {"order": i}) for i in range(2)])
    compiled = built.compile(checkpointer=saver)
    crashed(compiled, {"order": "a"})
    with pytest.raises(EffectDiverged, match="ID of their thread"):
        compiled.invoke(None, compiled.get_state(config()).config, durability="sync")
    assert len(bank.keys) == 2
