"""Stands between the program and the model server, and keeps what both send."""

import contextlib
import http.client
import json
import select
import socket
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jsonschema


class Exchange:
    """One request for an answer, and the answer."""

    def __init__(self, role, request):
        self.role, self.request = role, request
        self.status, self.content, self.finish_reason, self.error = None, "", None, ""
        self.began, self.seconds, self.usage = time.monotonic(), 0.0, {}

    def schema(self):
        """Returns the name and the schema of the JSON that was asked for."""
        wanted = (self.request.get("response_format") or {}).get("json_schema") or {}
        return wanted.get("name"), wanted.get("schema")

    def is_valid(self):
        """Tells whether the answer is whole and valid against the schema that was sent."""
        if self.status != 200 or self.finish_reason != "stop":
            return False
        try:
            jsonschema.validate(json.loads(self.content), self.schema()[1])
        except (ValueError, jsonschema.ValidationError):
            return False
        return True

    def read(self, body):
        """Reads an answer, whole or streamed."""
        text = body.decode(errors="replace")
        pieces = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")]
        for piece in pieces or [text]:
            try:
                answer = json.loads(piece)
            except ValueError:
                continue
            self.error = str((answer.get("error") or {}).get("message") or self.error)
            self.usage = answer.get("usage") or self.usage
            for choice in answer.get("choices") or []:
                message = choice.get("message") or choice.get("delta") or {}
                self.content += message.get("content") or ""
                self.finish_reason = choice.get("finish_reason") or self.finish_reason


class Recorder:
    """Forwards everything to one server."""

    def __init__(self, upstream):
        self.exchanges, self.upstream = [], upstream
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                self.forward(None)

            def do_POST(self):
                self.forward(self.rfile.read(int(self.headers["content-length"] or 0)))

            def forward(self, body):
                exchange = None
                if body and self.path.endswith("/chat/completions"):
                    exchange = Exchange(self.headers.get("x-perihelion-role"), json.loads(body))
                    recorder.exchanges.append(exchange)
                began, received = time.monotonic(), b""
                way = http.client.HTTPConnection(upstream.removeprefix("http://"), timeout=600)
                leaving = threading.Thread(target=self.leave_with_client, args=(way,), daemon=True)
                try:
                    way.request(self.command, self.path, body, {"content-type": "application/json"})
                    leaving.start()
                    response = way.getresponse()
                    self.send_response(response.status)
                    self.send_header("content-type", response.headers.get("content-type") or "application/json")
                    self.send_header("connection", "close")
                    self.end_headers()
                    while piece := response.read1(65536):
                        received += piece
                        self.wfile.write(piece)
                        self.wfile.flush()
                    if exchange:
                        exchange.status = response.status
                except (OSError, http.client.HTTPException):
                    pass  # The program left, because its time was up.
                finally:
                    way.close()
                self.close_connection = True
                if exchange:
                    exchange.seconds = time.monotonic() - began
                    exchange.read(received)

            def leave_with_client(self, way):
                """Has the server stop when the program no longer waits, as it does without this between them."""
                with contextlib.suppress(OSError, ValueError, AttributeError):
                    select.select([self.connection], [], [])
                    way.sock.shutdown(socket.SHUT_RDWR)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def post(self, body):
        """Sends the server a request of the test's own; returns status and text."""
        url = self.upstream + "/v1/chat/completions"
        request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=300) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()

    def close(self):
        self.server.shutdown()
