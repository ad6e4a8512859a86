"""A server that is called back: it answers as it is told, and keeps what it was sent."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue


class Receiver:
    """Answers calls with these codes, in turn, and then with 200."""

    def __init__(self, *codes):
        self.calls, codes = Queue(), list(codes)

        class Call(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_POST(call):
                body = call.rfile.read(int(call.headers["content-length"]))
                call.send_response(codes.pop(0) if codes else 200)
                call.send_header("content-length", "0")
                call.end_headers()
                self.calls.put((json.loads(body), dict(call.headers.items())))

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Call)
        self.url = f"http://127.0.0.1:{self.server.server_port}/called"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def next(self):
        """Waits for the next call and returns its body and its headers."""
        return self.calls.get(timeout=50)

    def is_empty(self):
        return self.calls.empty()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
