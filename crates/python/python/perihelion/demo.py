"""The graph of `perihelion demo --python`, and the client that kills its process: a ReAct agent that refunds an order."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import convert_to_messages, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.config import get_stream_writer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from perihelion.effects import once

QUESTION = "Order 1042 arrived broken. Refund it."


class Endpoint(BaseChatModel):
    """Asks the model at `OPENAI_BASE_URL`."""

    tools: list[dict[str, Any]] = []

    @property
    def _llm_type(self) -> str:
        return "endpoint"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self.model_copy(update={"tools": [convert_to_openai_tool(one) for one in tools]})

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:
        asked = {"model": "scripted", "messages": convert_to_openai_messages(messages), "tools": self.tools}
        address = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
        request = urllib.request.Request(address, json.dumps(asked).encode(), {"content-type": "application/json"})
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
            message = json.load(answer)["choices"][0]["message"]
        return ChatResult(generations=[ChatGeneration(message=convert_to_messages([message])[0])])


def book() -> Path:
    """Returns the file to which the bank adds a line for each refund."""
    return Path(os.environ["DEMO_BOOK"])


@once
def pay_back(order: str, cents: int) -> str:
    with book().open("a") as file:
        file.write(f"{order} {cents}\n")
    return f"receipt-{order}"


def wait_for_kill(name: str, config: RunnableConfig) -> None:
    """Waits, in the first attempt, for the client to kill this process."""
    if (place := config["configurable"].get("kills")) and not Path(place, name).exists():
        get_stream_writer()({"tool": name, "process": os.getpid()})
        time.sleep(60)


@tool
def find_order(order: str, config: RunnableConfig) -> str:
    """Finds an order by its number."""
    wait_for_kill("find_order", config)
    return f"order {order}: teapot, 1999 cents, paid by card"


@tool
def refund(order: str, cents: int, config: RunnableConfig) -> str:
    """Refunds an order."""
    receipt = pay_back(order, cents)
    wait_for_kill("refund", config)
    return f"refunded {cents} cents: {receipt}"


TOOLS = [find_order, refund]


def agent(state: MessagesState) -> dict[str, Any]:
    return {"messages": [Endpoint().bind_tools(TOOLS).invoke(state["messages"])]}


graph = StateGraph(MessagesState)
graph.add_node("agent", agent)
graph.add_node("tools", ToolNode(TOOLS))
graph.add_edge(START, "agent")
graph.add_conditional_edges("agent", tools_condition)
graph.add_edge("tools", "agent")


def main(url: str, thread: str, place: str) -> None:
    """Asks the graph at a server, and kills its process during each tool."""
    from langgraph_sdk import get_sync_client

    client = get_sync_client(url=url)
    client.threads.create(thread_id=thread)
    print(f"question: {QUESTION}", flush=True)
    question: Any = {"messages": [{"role": "user", "content": QUESTION}]}
    config: Any = {"configurable": {"kills": place}}
    for part in client.runs.stream(thread, "refunds", input=question, config=config, stream_mode=["updates", "custom"]):
        data: Any = part.data
        if part.event == "custom":
            Path(place, data["tool"]).touch()
            print(f"killing the process of the graph ({data['process']}) during the tool {data['tool']}", flush=True)
            os.kill(data["process"], signal.SIGKILL)
        elif part.event == "updates":
            for node, update in data.items():
                for message in update["messages"]:
                    calls = ", ".join(f"{call['name']}({call['args']})" for call in message.get("tool_calls") or ())
                    print(f"{node}: {message['content'] or calls}", flush=True)
        elif part.event == "error":
            sys.exit(f"the run failed: {data}")
    refunds = Path(place, "book").read_text().splitlines()
    print(f"2 kills, {len(refunds)} refund in the bank's book", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
