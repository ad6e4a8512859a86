"""Graphs of public kinds, served by the tests."""

import asyncio
import operator
import os
import time
from typing import Annotated, Any

from langchain_core.language_models import FakeMessagesListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Send, interrupt
from typing_extensions import TypedDict


def log(line: str) -> None:
    """Notes that a node ran, in a file that outlives the process."""
    if path := os.environ.get("HOSTED_LOG"):
        with open(path, "a") as file:
            file.write(line + "\n")


# An agent that calls a tool and answers: model, tools, model.


class Messages(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def model(state: Messages) -> dict[str, Any]:
    log("model")
    if isinstance(state["messages"][-1], ToolMessage):
        answers = GenericFakeChatModel(messages=iter([AIMessage(f"It is {state['messages'][-1].content} in Oslo.")]))
    else:
        call = {"name": "weather", "args": {"city": "Oslo"}, "id": "call-1"}
        answers = FakeMessagesListChatModel(responses=[AIMessage("", tool_calls=[call])])
    return {"messages": [answers.invoke(state["messages"])]}


def tools(state: Messages) -> dict[str, Any]:
    log("tools")
    return {"messages": [ToolMessage("sunny", tool_call_id=call["id"]) for call in state["messages"][-1].tool_calls]}


react = StateGraph(Messages)
react.add_node("model", model)
react.add_node("tools", tools)
react.add_edge(START, "model")
react.add_conditional_edges("model", lambda s: "tools" if s["messages"][-1].tool_calls else END, ["tools", END])
react.add_edge("tools", "model")


# A graph that asks twice in one node, and once more in the next.


class Order(TypedDict, total=False):
    item: str
    name: str
    amount: int
    done: Annotated[list[str], operator.add]


def ask(state: Order) -> dict[str, Any]:
    log("ask")
    name = interrupt("Your name?")
    amount = interrupt({"question": "How many?", "of": state["item"]})
    return {"name": name, "amount": amount, "done": ["ask"]}


def confirm(state: Order) -> Command[Any]:
    approved = interrupt({"confirm": f"{state['amount']} {state['item']} for {state['name']}"})
    return Command(update={"done": ["confirmed" if approved else "refused"]}, goto="ship" if approved else END)


def ship(state: Order) -> dict[str, Any]:
    log("ship")
    return {"done": ["shipped"]}


order = StateGraph(Order)
order.add_node("ask", ask)
order.add_node("confirm", confirm, destinations=("ship", END))
order.add_node("ship", ship)
order.add_edge(START, "ask")
order.add_edge("ask", "confirm")
order = order.compile()


# Work in parallel, each piece in a subgraph that asks where its piece is named so.


class Piece(TypedDict, total=False):
    piece: str
    found: Annotated[list[str], operator.add]


def look(state: Piece) -> dict[str, Any]:
    get_stream_writer()({"looking": state["piece"]})
    if state["piece"].startswith("ask"):
        return {"found": [f"{state['piece']}={interrupt(state['piece'])}"]}
    return {"found": [state["piece"]]}


piece = StateGraph(Piece)
piece.add_node("look", look)
piece.add_edge(START, "look")


class Pieces(TypedDict, total=False):
    pieces: list[str]
    found: Annotated[list[str], operator.add]


fan = StateGraph(Pieces)
fan.add_node("split", lambda state: {})
fan.add_node("piece", piece.compile())
fan.add_node("join", lambda state: {"found": ["joined"]})
fan.add_edge(START, "split")
fan.add_conditional_edges("split", lambda s: [Send("piece", {"piece": p}) for p in s["pieces"]], ["piece"])
fan.add_edge("piece", "join")


# Slow steps that count themselves, for kills; and nodes that fail or show what they were given.


class Count(TypedDict, total=False):
    steps: int
    pause: float
    done: Annotated[list[int], operator.add]
    seen: dict[str, Any]


async def count(state: Count) -> dict[str, Any]:
    done = len(state.get("done", []))
    log(f"begin {done}")
    await asyncio.sleep(state.get("pause", 0))
    log(f"end {done}")
    return {"done": [done]}


slow = StateGraph(Count)
slow.add_node("count", count)
slow.add_edge(START, "count")
slow.add_conditional_edges("count", lambda s: "count" if len(s["done"]) < s["steps"] else END)


def fail(state: Count) -> dict[str, Any]:
    if not os.path.exists(os.environ.get("HOSTED_FIXED", "/nowhere")):
        raise ValueError("not today")
    return {"done": [1]}


broken = StateGraph(Count)
broken.add_node("first", lambda state: {"done": [0]})
broken.add_node("fail", fail)
broken.add_edge(START, "first")
broken.add_edge("first", "fail")


class Silent(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


def raise_silent(state: Count) -> dict[str, Any]:
    raise Silent


silent = StateGraph(Count)
silent.add_node("raise", raise_silent)
silent.add_edge(START, "raise")


class Context(TypedDict, total=False):
    tone: str


def seen(state: Count) -> dict[str, Any]:
    from langgraph.config import get_config, get_store
    from langgraph.runtime import get_runtime

    configurable = get_config()["configurable"]
    store = get_store()
    store.put(("seen",), "last", {"at": time.time()})
    user = configurable.get("langgraph_auth_user")
    return {
        "seen": {
            "tone": (get_runtime().context or {}).get("tone"),
            "user": user["identity"] if user else None,
            "graph": configurable["graph_id"],
            "flavour": configurable.get("flavour"),
            "stored": bool(store.get(("seen",), "last")),
        }
    }


context = StateGraph(Count, context_schema=Context)
context.add_node("seen", seen)
context.add_edge(START, "seen")


def keys(state: Count) -> dict[str, Any]:
    from langgraph.config import get_config

    return {"seen": {name: repr(value) for name, value in get_config()["configurable"].items()}}


configured = StateGraph(Count)
configured.add_node("keys", keys)
configured.add_edge(START, "keys")


def demanding(config: Any) -> Any:
    """Makes a graph for a config that names a model."""
    return react.compile(name=config["configurable"]["model"])


def fork_twice(state: Count) -> dict[str, Any]:
    """Forks a process that opens files, and forks another one that writes to them."""
    path = os.environ["HOSTED_LOG"] + ".forks"
    if os.fork() == 0:
        files = [os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY) for _ in range(50)]
        if os.fork() == 0:
            try:
                written = sum(os.write(file, b".") for file in files)
            except OSError:
                written = 0
            os.write(files[-1], b"whole" if written == len(files) else b"torn")
        os._exit(0)
    while not os.path.exists(path) or not os.path.getsize(path) > 3:
        time.sleep(0.05)
    time.sleep(0.5)
    with open(path) as file:
        return {"seen": {"files": file.read().strip(".")}}


forks = StateGraph(Count)
forks.add_node("fork", fork_twice)
forks.add_edge(START, "fork")


async def factory(config: Any) -> Any:
    return react.compile()
