"""Code mode for agents of smolagents: a tool that runs programs over other tools.

    from smolagents import ToolCallingAgent
    from wattle.smolagents import ProgramTool

    agent = ToolCallingAgent(tools=[ProgramTool([weather, mail])], model=model)

The executor of a `CodeAgent` gets programs in Python, which its prompts, its parser and its answers
rely on. Wattle does not run Python, so there is no executor for it here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import smolagents  # type: ignore[import-untyped]

from wattle import _code_mode
from wattle._scope import Grants
from wattle._tools import Tool

__all__ = ["ProgramTool"]


class ProgramTool(smolagents.Tool):  # type: ignore[misc]
    """A tool that runs programs in a sandbox.

    Args:
        tools: The tools that programs call: those of smolagents, or Python functions.
        grants: What programs may use of the machine.
        timeout: Maximum running time of a program, in seconds.
    """

    name = _code_mode.NAME
    description = "Runs a program"
    inputs = {
        "program": {"type": "string", "description": "The program"},
        "args": {
            "type": "array",
            "description": "The program's arguments, as (arg 0), (arg 1), …",
            "nullable": True,
        },
    }
    output_type = "string"

    def __init__(
        self,
        tools: Sequence[Callable[..., Any]] = (),
        grants: Grants | None = None,
        timeout: float | None = None,
    ) -> None:
        self._called = [_tool(tool) for tool in tools]
        self._grants, self._timeout = grants, timeout
        self.description = _code_mode.description(self._called)
        super().__init__()

    def forward(self, program: str, args: list[str] | None = None) -> str:
        """Runs a program and returns what it prints."""
        prepared = _code_mode.prepare(program, self._called, self._grants, self._timeout)
        return prepared.run(*(args or ())).text


def _tool(tool: Any) -> Tool:
    if isinstance(tool, Tool) or not isinstance(tool, smolagents.Tool):
        return tool if isinstance(tool, Tool) else Tool(tool)

    def call(**arguments: Any) -> Any:
        return tool(**arguments)

    def property_of(given: dict[str, Any]) -> dict[str, Any]:
        kind = {} if given["type"] == "any" else {"type": given["type"]}
        return {**kind, "description": given["description"]}

    inputs = tool.inputs
    schema = {
        "type": "object",
        "properties": {name: property_of(given) for name, given in inputs.items()},
        "required": [name for name, given in inputs.items() if not given.get("nullable")],
    }
    is_text = tool.output_type == "string"
    return Tool(
        call,
        name=_code_mode.program_name(tool.name),
        description=tool.description,
        schema=schema,
        result_schema=None if is_text else {},
    )
