"""An agent's loop in Python, as a component for `wattle run --engine`.

    pip install componentize-py==0.25.1
    componentize-py -d agent/machine/wit -w engine componentize --stub-wasi \
        -p examples/engine app -o engine.wasm
    wattle run --engine engine.wasm "How many words has notes.txt?"

The loop asks the model, runs the program in a block ```wat of its answer, and shows the model what the
program printed. An answer without a block is the final one. The host records each request, applies the
policy, and counts the steps and the usage. docs/engine.md explains the world.
"""

import json
import re

import wit_world
from componentize_py_types import Err, Ok
from wit_world.imports import loop
from wit_world.imports.loop import (
    Call_Wat,
    Dialect,
    Execution_Ran,
    Execution_Stopped,
    InlineProgram,
    Message,
    Purpose,
    Reply_Answer,
    Request,
    Role,
)

FORM = """

To run a program, answer with one block that begins with ```wat and ends with ```. Its output is in the
next message. An answer without a block is final."""

BLOCK = re.compile(r"```wat\n(.*?)```", re.DOTALL)


def message(role, content):
    return Message(role, content, [], None, 0, False, False, None)


def emit(kind, **fields):
    loop.emit(json.dumps({"type": kind, **fields}))


def asked(messages):
    """Returns the model's answer, or None if the run ends before."""
    _spent, result = loop.ask(Request(0, Purpose.ACT, Dialect.TEXT, messages))
    if isinstance(result, Err):
        return None
    if not isinstance(result.value, Reply_Answer):
        raise Err("the model did not answer")
    return result.value.value.text


def executed(step, body):
    """Returns what the program printed, or None if the run ends before."""
    emit("tool_start", step=step, call=1, label="wat", source="wat", description="", body=body)
    _spent, result = loop.execute([Call_Wat(InlineProgram(body, []))])
    if isinstance(result, Err):
        return None
    (execution,) = result.value
    ran = execution.value if isinstance(execution, (Execution_Ran, Execution_Stopped)) else None
    succeeded = isinstance(execution, Execution_Ran) and ran.failure is None
    if succeeded:
        output = "\n".join(ran.results)
    elif ran is None:
        output = execution.value
    else:
        output = ran.reason if isinstance(execution, Execution_Stopped) else str(ran.failure.reason)
    emit(
        "tool_result", step=step, call=1, source="wat", success=succeeded, output=output,
        exit_code=0 if succeeded else None, dur_ms=ran.cost.dur_ms if ran else 0, fuel=None,
    )
    return output


class WitWorld(wit_world.WitWorld):
    def run(self, prompt: str, config: str) -> wit_world.Report:
        system = json.loads(config)["system"]
        if isinstance(system, dict):
            system = system["stable"] + system["rest"]
        messages = [message(Role.SYSTEM, system + FORM), message(Role.USER, prompt)]
        step = 1
        while True:
            text = asked(messages)
            if text is None:
                break
            messages.append(message(Role.ASSISTANT, text))
            block = BLOCK.search(text)
            if block is None:
                return wit_world.Report(wit_world.Ending_Answered(text), messages[1:])
            output = executed(step, block.group(1))
            if output is None:
                break
            messages.append(message(Role.USER, f"The program printed:\n{output}"))
            step += 1
        # The run was stopped. The host knows the reason, and how the run ends.
        return wit_world.Report(wit_world.Ending_Failed("stopped"), messages[1:])
