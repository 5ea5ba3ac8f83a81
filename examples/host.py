"""Runs the agent's loop, engine.wasm, in a host of its own: a model that answers from a recording, and
programs that this host makes up. Prints the answer.

    just component
    pip install wasmtime==50.0.1
    python examples/host.py target/engine.wasm examples/engine/hello.jsonl "How many words?"

The world that the component needs is agent/machine/wit/engine.wit; docs/engine.md explains it.
"""

import json
import sys

from wasmtime import Engine, Store, WasiConfig
from wasmtime.component import Component, Linker, Record, Variant

LOOP = "wattle:engine/loop@0.1.0"


def record(**fields):
    """Returns a record. An underscore in a name stands for a hyphen."""
    made = Record()
    for name, value in fields.items():
        setattr(made, name.replace("_", "-"), value)
    return made


def usage(prompt=0, completion=0):
    return record(prompt=prompt, completion=completion, cached=0, cost=None)


class Model:
    """A model that answers from the replies of a recording, in order."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as lines:
            self.replies = [line["reply"] for line in map(json.loads, lines) if "reply" in line]

    def ask(self, _store, request):
        if not self.replies:
            return usage(), Variant("err", Variant("failed", "the recording has no more replies"))
        answer = record(
            text=self.replies.pop(0), calls=[], truncated=False, reasoning=None, filtered=None,
            provider=None, usage=usage(prompt=sum(len(one.content) for one in request.messages) // 4),
        )
        return usage(), Variant("ok", Variant("answer", answer))


def execute(_store, calls):
    """Runs no program: the results say which program would run."""
    # A result whose two cases have different Python types has no tag.
    return usage(), [ran(call) for call in calls]


def ran(call):
    text = getattr(call.payload, "body", None) or call.payload.name
    return Variant("ran", record(
        results=[f"a host in Python would run: {text}"], failure=None, answer=None, artifacts=[],
        kept=[], cost=record(dur_ms=0, fuel=None), warnings=[], fixes=[],
    ))


def emit(_store, event):
    event = json.loads(event)
    print(f"  {event['type']}: {event.get('content') or event.get('output') or ''}", file=sys.stderr)


def main(engine_file, recording, prompt):
    engine = Engine()
    store, linker = Store(engine), Linker(engine)
    store.set_wasi(WasiConfig())
    linker.add_wasip2()
    component = Component.from_file(engine, engine_file)
    with linker.root() as root, root.add_instance(LOOP) as loop:
        loop.add_func("ask", Model(recording).ask)
        loop.add_func("execute", execute)
        loop.add_func("emit", emit)
        loop.add_func("note", lambda _store, _notice: None)
    # This run needs no moderation, memory, traits or output contract, and nothing of `host`.
    linker.define_unknown_imports_as_traps(component)
    instance = linker.instantiate(store, component)
    setup = {"system": "You answer with programs.", "settings": {"max_steps": 5}}
    result = instance.get_func(store, "run")(store, prompt, json.dumps(setup))
    if isinstance(result, str):
        sys.exit(f"the engine failed: {result}")
    ending = result.ending
    print(getattr(ending.payload, "text", ending.payload))
    return 0 if ending.tag == "answered" else 1


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
