"""The process of hosted graphs, driven as the server does it, in memory of what the server would have committed."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.types import Interrupt
from perihelion import PerihelionSaver
from perihelion.host._wire import encode
from pydantic import BaseModel

GRAPHS = ["react", "order", "fan", "slow", "broken", "context", "silent", "configured", "demanding", "forks"]


class Child:
    """A process of hosted graphs."""

    def __init__(self, home: Path) -> None:
        self.ours, theirs = socket.socketpair()
        self.ours.settimeout(60)
        command = [sys.executable, "-m", "perihelion.host"]
        self.process = subprocess.Popen(command, stdin=theirs, cwd=home)
        theirs.close()
        self.newest = 0
        specs = {name: f"hosted_graphs.py:{name}" for name in GRAPHS}
        order = {"root": str(home), "database": str(home / "host.db"), "graphs": specs, "env": {"HOSTED_LOG": str(home / "log")}}
        self.loaded = next(self.call("load", order))

    def send(self, frame: dict[str, Any]) -> None:
        data = json.dumps(frame).encode()
        self.ours.sendall(struct.pack(">I", len(data)) + data)

    def receive(self) -> dict[str, Any]:
        header = self.ours.recv(4, socket.MSG_WAITALL)
        if len(header) < 4:
            raise ConnectionError("the process ended")
        (length,) = struct.unpack(">I", header)
        frame: dict[str, Any] = json.loads(self.ours.recv(length, socket.MSG_WAITALL))
        return frame

    def call(self, op: str, order: dict[str, Any]) -> Iterator[dict[str, Any]]:
        self.newest += 1
        self.send({"call": self.newest, "op": op, **order})
        while True:
            frame = self.receive()
            yield frame
            if frame["kind"] == "step" and op == "run":
                self.send({"call": self.newest, "op": "next"})
            elif frame["kind"] != "event":
                return

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.ours.close()


class Thread:
    """What the server commits of a thread."""

    def __init__(self, graph: str, child: Child) -> None:
        self.graph, self.child, self.id = graph, child, str(uuid.uuid4())
        self.source: str | None = None
        self.checkpoint: str | None = None
        self.line = 0
        self.events: list[dict[str, Any]] = []
        self.steps: list[dict[str, Any]] = []
        self.request: dict[str, Any] = {"modes": ["updates"]}

    @property
    def values(self) -> Any:
        return self.steps[-1]["values"]

    def order(self, **more: Any) -> dict[str, Any]:
        at = {"thread": self.id, "source": self.source, "checkpoint": self.checkpoint, "line": str(self.line)}
        return {"graph": self.graph, "tenant": "default", **at, "request": self.request, **more}

    def run(self, die_after: int | None = None, **given: Any) -> dict[str, Any]:
        """Runs to the end; dies before the server has committed the step after `die_after` of them."""
        for frame in self.child.call("run", self.order(**given)):
            if frame["kind"] == "event":
                self.events.append(frame)
            elif frame["kind"] == "step":
                if die_after == 0:
                    raise InterruptedError
                die_after = None if die_after is None else die_after - 1
                self.checkpoint, self.source = frame["checkpoint"], self.id
                self.steps.append(frame)
        return frame

    def begin(self, given: Any, die_after: int | None = None) -> dict[str, Any]:
        self.line += 1
        return self.run(die_after, has_input=True, input=given)

    def answer(self, asks: dict[str, Any], *values: Any) -> dict[str, Any]:
        answers = [
            {"id": one["id"], "answered": one["answered"], "value": value}
            for one, value in zip(asks["interrupts"], values, strict=False)
        ]
        return self.run(answers=answers)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    text = Path(__file__).parent.joinpath("hosted", "hosted_graphs.py").read_text()
    (tmp_path / "hosted_graphs.py").write_text(text)
    return tmp_path


@pytest.fixture
def child(home: Path) -> Iterator[Child]:
    child = Child(home)
    yield child
    child.kill()


def test_graphs_are_described(child: Child) -> None:
    assert set(child.loaded["graphs"]) == set(GRAPHS)
    assert "pieces" in child.loaded["graphs"]["fan"]["input_schema"]["properties"]
    assert any(path.endswith("hosted_graphs.py") for path in child.loaded["files"])


def test_a_run_that_dies_at_any_step_ends_as_one_that_does_not(home: Path) -> None:
    for steps in range(5):
        child = Child(home)
        thread = Thread("slow", child)
        with pytest.raises(InterruptedError):
            thread.begin({"steps": 4}, die_after=steps)
        child.kill()
        thread.child = Child(home)
        # The server knows of a step that it has not committed nothing but the input, if it was the first.
        given = {"has_input": True, "input": {"steps": 4}} if steps == 0 else {}
        assert thread.run(**given)["kind"] == "end"
        assert [step["values"]["done"] for step in thread.steps] == [[*range(n)] for n in range(5)]
        thread.child.kill()


# LangGraph runs the graphs of servers in asyncio, where `interrupt` needs the task contexts of Python 3.11.
asks = pytest.mark.skipif(sys.version_info < (3, 11), reason="interrupt needs Python 3.11 in asyncio")


@asks
def test_an_answer_that_was_taken_is_not_taken_by_the_next_question(child: Child) -> None:
    thread = Thread("order", child)
    asks = thread.begin({"item": "tea"})
    assert [one["value"] for one in asks["interrupts"]] == ["Your name?"]
    second = thread.answer(asks, "Ada")
    assert [one["value"]["question"] for one in second["interrupts"]] == ["How many?"]
    # As if the server had died before it knew of the second question.
    assert thread.answer(asks, "Ada") == {**second, "call": child.newest}
    third = thread.answer(second, 3)
    assert third["interrupts"][0]["value"] == {"confirm": "3 tea for Ada"}
    assert thread.answer(third, True)["kind"] == "end"
    assert thread.values["done"] == ["ask", "confirmed", "shipped"]


@asks
def test_questions_of_subgraphs_are_answered_one_by_one(child: Child) -> None:
    thread = Thread("fan", child)
    thread.request = {"modes": ["custom", "updates"], "subgraphs": True}
    asks = thread.begin({"pieces": ["a", "ask1", "ask2"]})
    assert [one["value"] for one in asks["interrupts"]] == ["ask1", "ask2"]
    assert sorted(one["data"]["looking"] for one in thread.events if one["mode"] == "custom") == ["a", "ask1", "ask2"]
    left = thread.answer(asks, "one")
    assert [one["value"] for one in left["interrupts"]] == ["ask2"]
    thread.answer(left, "two")
    assert thread.values["found"] == ["a", "ask1=one", "ask2=two", "joined"]


@asks
def test_the_edit_of_a_command_is_made_once(child: Child) -> None:
    thread = Thread("order", child)
    command = {"update": {"item": "tea", "done": ["edited"]}, "goto": "ask"}
    thread.begin({"item": "coffee"})
    thread.line += 1
    asks = thread.run(command=command)
    # As if the server had died before it knew of the question.
    assert thread.run(command=command)["interrupts"] == asks["interrupts"]
    assert thread.values["done"] == ["edited"] and thread.values["item"] == "tea"
    answers = [{"id": one["id"], "answered": one["answered"], "value": "Ada"} for one in asks["interrupts"]]
    along = {"id": str(uuid.uuid4()), "update": [["done", ["along"]]]}
    second = thread.run(answers=answers, command=along)
    assert thread.run(answers=answers, command=along)["interrupts"] == second["interrupts"]
    assert thread.values["done"] == ["edited", "along"]
    third = thread.answer(second, 3)
    assert third["interrupts"][0]["value"] == {"confirm": "3 tea for Ada"}
    assert thread.answer(third, True)["kind"] == "end"
    assert thread.values["done"] == ["edited", "along", "ask", "confirmed", "shipped"]


def test_a_command_sends_inputs_to_nodes(child: Child) -> None:
    thread = Thread("fan", child)
    thread.begin({"pieces": []})
    thread.line += 1
    sends = [{"node": "piece", "input": {"piece": name}} for name in "ab"]
    assert thread.run(command={"goto": sends})["kind"] == "end"
    assert thread.values["found"] == ["a", "b", "joined"]


@pytest.mark.parametrize("modes", [["values"], ["events", "values"]])
def test_no_node_runs_before_the_server_has_kept_the_step_before_it(child: Child, home: Path, modes: list[str]) -> None:
    thread = Thread("slow", child)
    thread.request = {"modes": modes}
    frames = child.call("run", thread.order(has_input=True, input={"steps": 4}))
    steps = (frame for frame in frames if frame["kind"] == "step")
    assert [next(steps)["values"]["done"] for _ in range(2)] == [[], [0]]
    time.sleep(1)
    assert (home / "log").read_text().split() == ["begin", "0", "end", "0"]
    child.send({"call": child.newest, "op": "cancel"})
    while (frame := child.receive())["kind"] != "error":
        assert frame["kind"] == "event"
    time.sleep(0.5)
    assert frame["error"] == "CancelledError" and (home / "log").read_text().split() == ["begin", "0", "end", "0"]


def test_a_factory_that_needs_its_config_does_not_keep_the_other_graphs_from_loading(child: Child) -> None:
    assert child.loaded["graphs"]["demanding"] == {} and child.loaded["graphs"]["slow"]["drawing"]
    config = {"configurable": {"model": "small"}}
    order = {"graph": "demanding", "tenant": "default", "config": config}
    assert next(child.call("describe", order))["answer"]["drawing"]["nodes"]
    failed = next(child.call("describe", {**order, "config": {}}))
    assert failed["error"] == "KeyError" and "model" in failed["message"]


def test_no_client_sets_the_own_fields_of_langgraph(child: Child) -> None:
    thread = Thread("configured", child)
    own = {"__pregel_checkpointer": None, "__pregel_other": "x"}
    thread.request = {"modes": [], "config": {"configurable": {**own, "flavour": "mint"}}}
    thread.begin({"steps": 1})
    seen = thread.values["seen"]
    assert seen["flavour"] == "'mint'" and "PerihelionSaver" in seen["__pregel_checkpointer"] and "__pregel_other" not in seen


def test_a_process_that_a_forked_one_forks_keeps_its_files(child: Child) -> None:
    thread = Thread("forks", child)
    thread.begin({"steps": 1})
    assert thread.values["seen"] == {"files": "whole"}


@dataclass
class Point:
    x: int
    _own: int = 0


class Model(BaseModel):
    x: int


@pytest.mark.parametrize(("odd", "shown"), [("\ud800", "?"), (2**70, 2**70), ({(1, 2): 3}, {"(1, 2)": 3})])
def test_one_odd_value_leaves_the_others_as_they_are(odd: Any, shown: Any) -> None:
    usual = {
        "at": datetime(2026, 1, 2, tzinfo=timezone.utc),
        "id": uuid.UUID(int=1),
        "color": signal.SIGTERM,
        "point": Point(1),
        "model": Model(x=1),
        "class": Model,
        "messages": [HumanMessage("hello", id="h")],
        "nested": ({1, 1}, b"bytes", float("nan"), {1: None, uuid.UUID(int=2): True}),
        "interrupt": Interrupt("sure?", id="i"),
    }
    alone = json.loads(encode(usual))
    assert alone["class"] == repr(Model) and alone["color"] == 15
    assert json.loads(encode({**usual, "odd": [odd], "model": Model(x=1)})) == {**alone, "odd": [shown]}


def test_an_exception_without_a_text_ends_its_run(child: Child) -> None:
    thread = Thread("silent", child)
    assert thread.begin({"steps": 1})["error"] == "Silent"


def test_no_context_names_a_user(child: Child) -> None:
    thread = Thread("context", child)
    forged = {"langgraph_auth_user": {"identity": "admin"}, "langgraph_auth_user_id": "admin", "tone": "dry"}
    thread.request = {"modes": [], "context": forged}
    thread.begin({"steps": 1})
    assert thread.values["seen"]["user"] is None and thread.values["seen"]["tone"] == "dry"


def test_a_thread_that_went_back_leaves_what_it_went_back_from(child: Child) -> None:
    thread = Thread("slow", child)
    thread.begin({"steps": 3})
    second = thread.steps[1]
    thread.checkpoint, thread.line = second["checkpoint"], 7
    thread.run()
    assert thread.values["done"] == [0, 1, 2]
    assert [step["metadata"]["source"] for step in thread.steps[4:]] == ["loop", "loop"]
    edit = next(child.call("update", {**thread.order(), "checkpoint": second["checkpoint"], "values": {"done": [9]}, "as_node": "count"}))
    assert edit["values"]["done"] == [0, 9] and edit["next"] == ["count"]
    thread.checkpoint, thread.line = edit["checkpoint"], 8
    thread.run()
    assert thread.values["done"] == [0, 9, 2]
    # Back to before the first input.
    thread.checkpoint, thread.line = None, 9
    thread.begin({"steps": 1})
    assert thread.values["done"] == [0]


def test_a_copy_begins_where_its_source_stood(child: Child) -> None:
    thread = Thread("slow", child)
    thread.begin({"steps": 2})
    copy = Thread("slow", child)
    copy.source, copy.checkpoint, copy.line = thread.id, thread.checkpoint, 5
    copy.begin({"steps": 4})
    assert copy.values["done"] == [0, 1, 2, 3]


def test_a_pause_is_known_before_it(child: Child) -> None:
    thread = Thread("react", child)
    thread.request = {"modes": [], "interrupt_before": ["tools"]}
    end = thread.begin({"messages": [{"role": "user", "content": "Hi"}]})
    assert end["kind"] == "end" and end["next"] == ["tools"]
    assert [step["pauses"] for step in thread.steps] == [False, True]
    thread.request = {"modes": []}
    assert thread.run()["next"] == [] and len(thread.values["messages"]) == 4


def test_an_exception_has_its_traceback_and_the_run_goes_on_when_it_is_mended(child: Child) -> None:
    thread = Thread("broken", child)
    failed = thread.begin({"steps": 1})
    assert (failed["error"], failed["message"]) == ("ValueError", "not today")
    assert "hosted_graphs.py" in failed["traceback"]
    again = thread.run()
    assert again["error"] == "ValueError" and thread.values["done"] == [0]


def test_threads_are_listed_by_page_and_only_those_of_a_server_are_deleted(child: Child, home: Path) -> None:
    mine = [Thread("slow", child) for _ in range(3)]
    for thread in mine:
        thread.begin({"steps": 1})
    with PerihelionSaver.from_conn_string(str(home / "host.db")) as saver:
        config: Any = {"configurable": {"thread_id": "0-own", "checkpoint_ns": ""}}
        saver.put(config, empty_checkpoint(), {}, {})

    def listed(after: str) -> Any:
        return next(child.call("threads", {"after": after}))["answer"]

    every = ["0-own", *sorted(thread.id for thread in mine)]
    assert listed("") == every and listed(every[1]) == every[2:] and listed(every[-1]) == []
    for thread in every[:2]:
        next(child.call("delete", {"thread": thread}))
    assert listed("") == ["0-own", *every[2:]]


def test_output_of_graphs_is_no_frame_and_a_closed_socket_ends_the_process(home: Path) -> None:
    path = home / "hosted_graphs.py"
    path.write_text("import os\nprint('hello')\nos.write(1, b'hello')\n" + path.read_text())
    child = Child(home)
    assert child.loaded["kind"] == "loaded"
    child.ours.close()
    assert child.process.wait(timeout=20) == 0
    assert not os.path.exists(f"/proc/{child.process.pid}")
