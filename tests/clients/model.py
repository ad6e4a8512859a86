"""A scripted model for the tests of real clients: an OpenAI endpoint whose answers follow from words in the question.

`approve`: an agent's tool call that a person must approve; `twice`: two of them at once, by two agents; `clarify`: the
supervisor asks which year is meant; `slow`: the answer comes word by word, for some seconds; anything else is answered
at once; the nodes `report` and `agent` of the examples get their report and, after a call of their tool, an answer.
Prints its address.
"""

import json
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CALLS = {}
LOCK = threading.Lock()


def decision(agents=("qa",), tasks=(), clarification=None):
    return json.dumps({
        "thought_process": "scripted", "plan": ["answer"], "selected_agents": list(agents),
        "tasks": list(tasks), "clarification": clarification,
    })


def task(number, agent, text):
    return {"id": f"t{number}", "agent": agent, "task": text, "depends_on": []}


def of_tck(text):
    """Returns the newest id of a message of the A2A TCK, which says what it wants."""
    return (re.findall(r"\btck-[a-z-]+|test-resubscribe-message-id", text) or [""])[-1]


def supervisor(text):
    if of_tck(text).startswith("tck-input-required"):
        return decision([], [], "What else?")
    asked = re.search(r"<user_request>\s*(.*?)\s*</user_request>", text, re.S).group(1)
    has_results = "<result " in text or "<result>" in text
    if "approve" in asked and not has_results:
        return decision(["mcp_agent_notes"], [task(1, "mcp_agent_notes", "Write it down.")])
    if "twice" in asked and not has_results:
        return decision(
            ["mcp_agent_notes", "mcp_agent_diary"],
            [task(1, "mcp_agent_notes", "Write it down."), task(2, "mcp_agent_diary", "Write it down.")],
        )
    if "clarify" in asked and "1945" not in text:
        return decision([], [], "Which year?")
    return decision()


class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send(200, {"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        role = self.headers.get("x-perihelion-role", "")
        messages = body["messages"]
        text = "\n".join(str(one.get("content") or "") for one in messages)
        if role == "supervisor":
            return self.answer(body, supervisor(text))
        if role == "reflector":
            return self.answer(body, json.dumps({"status": "APPROVED", "refined_output": None, "feedback": None}))
        if role == "architect":
            server = (re.findall(r'<server name="([^"]+)"', text) or ["notes"])[0]
            agent = {"name": "writer", "role": "a writer", "goal": "Write things down.", "servers": [server]}
            return self.answer(body, json.dumps({
                "name": "writers", "description": "Writes things down.", "agents": [agent]}))
        node = self.headers.get("x-perihelion-agent", "")
        if role == "agent" and node == "report":
            return self.answer(body, "The earth moves.")
        if role == "agent" and node == "agent":
            # A call of this turn was answered already.
            if messages[-1]["role"] == "tool":
                return self.answer(body, "It is warm and dry in Padua, at 21 degrees.")
            call = {"name": "weather", "arguments": json.dumps({"place": "Padua"})}
            return self.answer(body, None, [{"id": "call_1", "type": "function", "function": call}])
        if role == "agent":
            if any(one["role"] == "tool" for one in messages):
                return self.answer(body, "It is written down.")
            call = {"name": "append_note", "arguments": json.dumps({"text": "remember"})}
            return self.answer(body, None, [{"id": "call_1", "type": "function", "function": call}])
        if of_tck(text).startswith("tck-artifact-text"):
            return self.answer(body, "Generated text content")
        slow = "slow" in text
        words = "Once upon a time there was a long story that nobody wanted to end." if slow else "Hello from the star."
        return self.answer(body, words, pause=0.25 if slow else 0)

    def answer(self, body, content, calls=None, pause=0):
        if not body.get("stream"):
            message = {"role": "assistant", "content": content}
            if calls:
                message["tool_calls"] = calls
            reason = "tool_calls" if calls else "stop"
            return self.send(200, self.shell("chat.completion", choices=[
                {"index": 0, "message": message, "finish_reason": reason}]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            for piece in re.findall(r"\S+\s*", content or ""):
                self.event(delta={"content": piece})
                time.sleep(pause)
            for index, call in enumerate(calls or []):
                self.event(delta={"tool_calls": [{"index": index, **call}]})
            self.event(delta={}, finish="tool_calls" if calls else "stop")
            self.wfile.write(b"data: [DONE]\n\n")
        except (BrokenPipeError, ConnectionResetError):
            pass

    def event(self, delta, finish=None):
        chunk = self.shell("chat.completion.chunk", choices=[{"index": 0, "delta": delta, "finish_reason": finish}])
        self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        self.wfile.flush()

    def shell(self, kind, **more):
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        return {"id": "scripted-1", "object": kind, "created": 1, "model": "scripted", "usage": usage, **more}

    def send(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024


if __name__ == "__main__":
    server = Server(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0), Model)
    print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
    server.serve_forever()
