"""Graphs of the shapes that strangers bring, each as small as it can be."""

import asyncio
import contextlib
import operator
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Annotated, Any

from langchain_core.messages import HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.types import Command, Send, interrupt
from langgraph_sdk import Auth
from pydantic import BaseModel
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    to: str
    log: Annotated[list[Any], operator.add]


def chain(*nodes: Any, **options: Any) -> StateGraph:
    """Makes a graph of named nodes in a row."""
    graph = StateGraph(State, **options)
    before = START
    for name, node in nodes:
        graph.add_node(name, node)
        graph.add_edge(before, name)
        before = name
    return graph


def says(text: Any) -> Any:
    return lambda state: {"log": [text]}


@contextlib.asynccontextmanager
async def factory(config: RunnableConfig) -> Any:
    names = [f"n{number}" for number in range(config.get("configurable", {}).get("count", 2))]
    yield chain(*((name, says(name)) for name in names)).compile()


fan = StateGraph(State)
fan.add_node("work", lambda state: {"log": [state["to"]]})
fan.add_node("join", lambda state: {"log": [len(state["log"])]})
fan.add_conditional_edges(START, lambda state: [Send("work", {"to": letter}) for letter in state["to"]], ["work"])
fan.add_edge("work", "join")

decide = chain(("decide", lambda state: Command(graph=Command.PARENT, goto=state["to"], update={"log": ["below"]})))
parent = StateGraph(State)
parent.add_node("below", decide.compile(), destinations=("left", "right"))
parent.add_node("left", says("left"))
parent.add_node("right", says("right"))
parent.add_edge(START, "below")

deep = chain(("ask", lambda state: {"log": [f"{interrupt('one?')}-{interrupt('two?')}"]})).compile()
middle = chain(("begin", says("middle")), ("deep", deep)).compile()
nested = chain(("begin", says("outer")), ("middle", middle), ("end", says("end")))

parallel = StateGraph(State)
for letter in "ab":
    parallel.add_node(letter, lambda state, letter=letter: {"log": [f"{letter}={interrupt(letter)}"]})
    parallel.add_edge(START, letter)
parallel.add_node("end", says("end"))
parallel.add_edge(["a", "b"], "end")


@dataclass
class Context:
    name: str = "nobody"
    level: int = 1


def greet(state: State, runtime: Runtime[Context]) -> dict[str, Any]:
    return {"log": [f"{runtime.context.name}:{runtime.context.level}"]}


context = chain(("greet", greet), context_schema=Context)


@task
def double(number: int) -> int:
    return number * 2


@entrypoint()
def functional(given: dict[str, Any], *, previous: Any = None) -> Any:
    doubled = [one.result() for one in [double(number) for number in given["numbers"]]]
    approved = interrupt({"doubled": doubled})
    return entrypoint.final(value={"approved": approved, "before": previous}, save=doubled)


clear = StateGraph(MessagesState)
clear.add_node("clear", lambda state: {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), HumanMessage("new")]})
clear.add_edge(START, "clear")


class Given(BaseModel):
    name: str


class Greeting(BaseModel):
    greeting: str = ""


class Whole(Given, Greeting):
    name: str = ""
    secret: str = ""


schemas = StateGraph(Whole, input_schema=Given, output_schema=Greeting)
schemas.add_node("greet", lambda state: {"greeting": f"Hello {state.name}", "secret": "hidden"})
schemas.add_edge(START, "greet")

paused = chain(("a", says("a")), ("b", says("b"))).compile(interrupt_before=["b"])
around = chain(("inside", paused), ("end", says("end")))
steps = chain(*((f"s{number}", says(number)) for number in range(4)))


entered: list[Any] = []
both = asyncio.Event()


@contextlib.asynccontextmanager
async def edited(runtime: Any) -> Any:
    """Lets no edit begin before there are two."""
    if runtime.access_context == "threads.update":
        entered.append(runtime)
        if len(entered) > 1:
            both.set()
        await both.wait()
    yield steps.compile()


@contextlib.asynccontextmanager
async def noted(config: RunnableConfig, runtime: Any) -> Any:
    """Notes in the store for what it is made."""
    if config["configurable"]:
        await runtime.store.aput(("noted",), runtime.access_context, {})
    yield steps.compile()


def fail(state: State) -> Any:
    raise ValueError("not like this")


failing = chain(("fail", fail))


async def leave(state: State) -> Any:
    sys.exit(state["to"])


leaving = chain(("leave", leave))
leaving_thread = chain(("leave", lambda state: sys.exit(state["to"])))


def stop(state: State) -> Any:
    raise KeyboardInterrupt(state["to"])


stopping = chain(("stop", stop))


async def wait(state: State) -> dict[str, Any]:
    """Ends when there is a file, and leaves a line for each time that it ran."""
    with open(state["to"] + ".runs", "a") as runs:
        runs.write("run\n")
    while not os.path.exists(state["to"]):
        await asyncio.sleep(0.05)
    return {"log": ["over"]}


waiting = chain(("wait", wait))


class Item(BaseModel):
    name: str


class Typed(State, total=False):
    items: Annotated[list[Item], operator.add]
    context: Context


def note(state: Typed) -> dict[str, Any]:
    return {"items": [Item(name="tea")], "context": Context("ann")}


def classes(state: Typed) -> dict[str, Any]:
    interrupt("sure?")
    return {"log": [type(one).__name__ for one in [*state["items"], state["context"]]]}


typed = StateGraph(Typed).add_sequence([note, classes]).add_edge(START, "note")


def remember(state: State, *, store: BaseStore) -> dict[str, Any]:
    store.put(("memories", "ann"), "tea", {"text": "green"})
    return {"log": sorted(item.key for item in store.search(("memories",)))}


memory = chain(("remember", remember))


def show(state: State, config: RunnableConfig) -> dict[str, Any]:
    user = config["configurable"].get("langgraph_auth_user") or {}
    headers = {name: value for name, value in config["configurable"].items() if name.startswith("x-")}
    return {"log": [user.get("identity"), user.get("role"), os.environ.get("HOSTED_KEY"), headers]}


shown = chain(("show", show))


async def block(state: State) -> dict[str, Any]:
    time.sleep(float(state["to"]))
    return {"log": ["over"]}


blocking = chain(("block", block))


def fork(state: State) -> dict[str, Any]:
    """Leaves a process behind that has all files of this one, and dies once."""
    if not os.path.exists(state["to"]):
        open(state["to"], "w").close()
        if os.fork() == 0:
            subprocess.run(["sleep", "120"])
            os._exit(0)
        os.kill(os.getpid(), 9)
    return {"log": ["alive"]}


forking = chain(("fork", fork))

auth = Auth()


class Cem(BaseModel):
    """A user whose identity is a property."""

    role: str = "role of cem"

    @property
    def identity(self) -> str:
        return "cem"


@auth.authenticate
async def authenticate(authorization: str | None) -> Any:
    name = (authorization or "").removeprefix("Bearer ")
    if name == "cem":
        return Cem()
    if name not in ("ann", "bob"):
        raise Auth.exceptions.HTTPException(status_code=401, detail="who are you?")
    return {"identity": name, "role": f"role of {name}"}


@auth.on
async def owned(ctx: Any, value: Any) -> Any:
    value.setdefault("metadata", {})["owner"] = ctx.user.identity
    return {"owner": ctx.user.identity}


@auth.on.crons.create
async def monthly(ctx: Any, value: Any) -> None:
    value["schedule"] = "1 0 1 * *" if value["schedule"] == "@monthly" else value["schedule"]
    value["payload"]["metadata"]["owner"] = ctx.user.identity


@auth.on.assistants.read
async def not_secret(ctx: Any, value: Any) -> bool:
    return value["assistant_id"] != "memory" or ctx.user.identity != "cem"


@auth.on.store
async def in_own_namespace(ctx: Any, value: Any) -> None:
    value["namespace"] = (ctx.user.identity, *(value["namespace"] or ()))


@auth.on.assistants.delete
async def never(ctx: Any, value: Any) -> bool:
    return False
