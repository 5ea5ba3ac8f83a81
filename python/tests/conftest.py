"""A provider on loopback, and recordings."""

from __future__ import annotations

import http.server
import json
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Cassette = Callable[..., Path]

# A shell that starts the tests in the background makes them ignore interrupts, and the processes that they
# start would do so, too.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def cassette(tmp_path: Path) -> Cassette:
    """Returns a function that writes a recording with these replies."""

    def write(*replies: str) -> Path:
        lines = [{"wattle_cassette": 1, "model": "recorded"}, *({"reply": one} for one in replies)]
        path = tmp_path / "replies.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    return write


class Provider:
    """A provider that is compatible with OpenAI. It sends its replies in turn, word by word."""

    def __init__(self) -> None:
        self.replies: list[str] = []
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        #: The words are sent while this is set.
        self.goes_on = threading.Event()
        self.goes_on.set()
        #: Set when the client has closed a connection in the middle of an answer.
        self.left = threading.Event()
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                pass

            def do_POST(self) -> None:
                provider.answer(self)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        self.keys.append(handler.headers["authorization"])
        self.requests.append(json.loads(handler.rfile.read(int(handler.headers["content-length"]))))
        reply = self.replies.pop(0)
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.end_headers()
        try:
            for word in [*(f"{word} " for word in reply.split(" ")), ""]:
                frame = {
                    "choices": [
                        {
                            "index": 0,
                            "delta": {"content": word},
                            "finish_reason": None if word else "stop",
                        }
                    ]
                }
                handler.wfile.write(f"data: {json.dumps(frame)}\n\n".encode())
                handler.wfile.flush()
                while not self.goes_on.wait(0.01):
                    # A comment, by which the server notices that the client has left.
                    handler.wfile.write(b": waiting\n\n")
                    handler.wfile.flush()
            handler.wfile.write(b"data: [DONE]\n\n")
        except OSError:
            self.left.set()


@pytest.fixture
def provider() -> Iterator[Provider]:
    provider = Provider()
    yield provider
    provider.goes_on.set()
    provider.server.shutdown()
    provider.server.server_close()
