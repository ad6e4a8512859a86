"""What our star does of a plain question: preprocess, a decision by a model in JSON mode, an answer by a model."""

import json
import os

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph

OPTIONS = {"model": "scripted", "api_key": "k", "base_url": os.environ["MODEL_URL"], "max_retries": 0}
decide = ChatOpenAI(**OPTIONS, default_headers={"x-perihelion-role": "supervisor"}).bind(
    response_format={"type": "json_object"})
answer = ChatOpenAI(**OPTIONS, streaming=True)


class State(MessagesState):
    selected: list[str]


async def preprocess(_: State):
    return {"selected": []}


async def supervisor(state: State):
    asked = [("system", "Answer in JSON: which agents are to work?"), *state["messages"]]
    decision = json.loads((await decide.ainvoke(asked)).content)
    return {"selected": decision["selected_agents"]}


async def qa(state: State):
    return {"messages": [await answer.ainvoke(state["messages"])]}


builder = StateGraph(State)
for node in (preprocess, supervisor, qa):
    builder.add_node(node.__name__, node)
builder.add_edge(START, "preprocess")
builder.add_edge("preprocess", "supervisor")
builder.add_conditional_edges("supervisor", lambda state: state["selected"][0], ["qa"])
builder.add_edge("qa", END)
graph = builder.compile()
