"""What the simplest run costs: a scripted model reads one file, and the real one's tokenizer counts the prompts."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ANSWER = "The rent is 940 euros a month."


def reply(role, request):
    if role == "reflector":
        return {"content": json.dumps({"status": "APPROVED", "refined_output": None, "feedback": ""})}
    if any(message["role"] == "tool" for message in request["messages"]):
        return {"content": ANSWER}
    call = {"name": "read", "arguments": json.dumps({"path": "lease.md"})}
    return {"content": "", "tool_calls": [{"id": "1", "type": "function", "function": call}]}


def requests_of(home, protocol):
    """Runs a question with one agent; returns the requests to the model."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asked.append(request)
            message = {"role": "assistant"} | reply(self.headers.get("x-perihelion-role"), request)
            reason = "tool_calls" if "tool_calls" in message else "stop"
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            choice = {"index": 0, "message": message, "finish_reason": reason}
            body = json.dumps({"model": "m", "choices": [choice], "usage": usage}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    env = {"OPENAI_BASE_URL": f"http://127.0.0.1:{server.server_port}/v1", "PERIHELION_MODELS_PROTOCOL": protocol}
    ended = home.run("--servers", "files.toml", "run", "How high is the rent?", "--json", env=env)
    server.shutdown()
    return ended, asked


def tokens(recorder, request):
    """Returns the tokens of a prompt, and those of its instructions: the system message without the server's words."""
    def count(messages):
        body = {"messages": messages, "max_tokens": 1} | ({"tools": request["tools"]} if request.get("tools") else {})
        status, answer = recorder.post(body)
        return json.loads(answer)["usage"]["prompt_tokens"] if status == 200 else 0

    def without(message):
        before, tag, rest = message["content"].partition("<server_description>")
        return message | {"content": tag and rest.partition("</server_description>")[0]}

    messages = request["messages"]
    whole = count(messages)
    return whole, whole - count([without(one) if one["role"] == "system" else one for one in messages])
