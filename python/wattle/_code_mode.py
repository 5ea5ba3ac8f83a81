"""One tool that runs programs, for the agents of other packages."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from wattle import _native
from wattle._program import Program
from wattle._scope import Grants, Scope
from wattle._tools import Tool

#: The name of the tool.
NAME = "run_program"

#: The JSON Schema of its arguments.
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "program": {"type": "string", "description": "The program"},
        "args": {
            "type": "array",
            "items": {"type": "string"},
            "description": "The program's arguments, as (arg 0), (arg 1), …",
        },
    },
    "required": ["program"],
}


def program_name(name: str) -> str:
    """Returns the name by which programs call a tool of another package."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"[^a-z0-9.]", "_", words.lower())


def description(tools: Sequence[Tool]) -> str:
    """Returns a description that teaches the language and lists the tools with their signatures."""
    scope = Scope(tools)
    lines = []
    for tool in tools:
        entry = json.loads(scope.native.program(tool.name) or "{}")
        value = "" if tool.result_schema is None else " → a value"
        about = tool.description.strip().split("\n\n")[0].replace("\n", " ")
        lines.append(f"{entry['usage']}{value} — {about}")
    functions = "\n".join(lines)
    return f"{_native.language()}\n\nThe tools that programs call:\n{functions}"


def prepare(
    source: str, tools: Sequence[Tool], grants: Grants | None, timeout: float | None
) -> Program:
    """Prepares a program that a model wrote."""
    return Program(source, tools=tools, grants=grants, timeout=timeout)
