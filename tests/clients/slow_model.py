"""A model on loopback that writes slowly, so that what arrives can be seen arriving.

Usage: slow_model.py. Prints its base URL. The last user message selects the form of the answer:
`marked` is ToolCall::Response, `done` is a call of the function `done`, and anything else is text.
"""

import http.server
import json
import time

WORDS = [f"word{number}" for number in range(200)]
PAUSE = 0.005


class Model(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        asked = [m["content"] for m in request["messages"] if m["role"] == "user"][-1]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        answer = " ".join(WORDS)
        if "done" in asked:
            self.send({"tool_calls": [{"index": 0, "id": "a", "type": "function",
                                       "function": {"name": "done", "arguments": ""}}]})
            for part in json.dumps({"result": answer}).split(" "):
                self.send({"tool_calls": [{"index": 0, "function": {"arguments": part + " "}}]})
        else:
            text = f'ToolCall::Response("""{answer}""")' if "marked" in asked else answer
            for part in text.split(" "):
                self.send({"content": part + " "})
        self.send({}, "stop")
        self.wfile.write(b"data: [DONE]\n\n")

    def send(self, delta, finish=None):
        frame = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        self.wfile.write(f"data: {json.dumps(frame)}\n\n".encode())
        self.wfile.flush()
        time.sleep(PAUSE)


if __name__ == "__main__":
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    print(f"http://127.0.0.1:{server.server_address[1]}/v1", flush=True)
    server.serve_forever()
