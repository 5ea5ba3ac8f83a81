"""Code mode for agents of pydantic-ai: the model writes programs over a toolset.

    from pydantic_ai import Agent
    from pydantic_ai.toolsets import FunctionToolset
    from wattle.pydantic_ai import CodeMode

    agent = Agent("openai:gpt-5", toolsets=[CodeMode(FunctionToolset([weather, mail]))])

Instead of the tools, the model sees one tool, `run_program`. A program calls the tools as
functions, loops and computes in a sandbox, and only what it prints comes back. The calls go through
the wrapped toolset, with its validation and its hooks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai import ModelRetry, RunContext
from pydantic_ai.tools import AgentDepsT, ToolDefinition
from pydantic_ai.toolsets import ToolsetTool, WrapperToolset
from pydantic_core import SchemaValidator, to_jsonable_python
from typing_extensions import NotRequired, TypedDict

from wattle import _code_mode
from wattle._errors import Error
from wattle._scope import Grants
from wattle._tools import Tool

__all__ = ["CodeMode"]


class _Arguments(TypedDict):
    program: str
    args: NotRequired[list[str]]


_VALIDATOR = SchemaValidator(TypeAdapter(_Arguments).core_schema)


@dataclass
class CodeMode(WrapperToolset[AgentDepsT]):
    """A toolset whose one tool runs programs that call the tools of another toolset.

    Tools that the application runs itself, or that need an approval, stay tools of their own.
    """

    #: What programs may use of the machine.
    grants: Grants | None = None
    #: Maximum running time of a program, in seconds.
    timeout: float | None = None
    #: Maximum number of times that the model may correct a program that fails.
    max_retries: int = 3

    async def get_tools(self, ctx: RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:
        wrapped = await self.wrapped.get_tools(ctx)
        called = self._tools(wrapped, ctx)
        others = {name: tool for name, tool in wrapped.items() if not _is_called(tool)}
        definition = ToolDefinition(
            name=_code_mode.NAME,
            description=_code_mode.description(called),
            parameters_json_schema=_code_mode.SCHEMA,
        )
        program = ToolsetTool(
            toolset=self,
            tool_def=definition,
            max_retries=self.max_retries,
            args_validator=_VALIDATOR,
        )
        return {**others, _code_mode.NAME: program}

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[AgentDepsT],
        tool: ToolsetTool[AgentDepsT],
    ) -> Any:
        if name != _code_mode.NAME:
            return await self.wrapped.call_tool(name, tool_args, ctx, tool)
        called = self._tools(await self.wrapped.get_tools(ctx), ctx)
        try:
            program = _code_mode.prepare(tool_args["program"], called, self.grants, self.timeout)
            return (await program.arun(*tool_args.get("args", ()))).text
        except Error as error:
            raise ModelRetry(str(error)) from error

    def _tools(
        self, wrapped: dict[str, ToolsetTool[AgentDepsT]], ctx: RunContext[AgentDepsT]
    ) -> list[Tool]:
        return [self._tool(name, tool, ctx) for name, tool in wrapped.items() if _is_called(tool)]

    def _tool(self, name: str, tool: ToolsetTool[AgentDepsT], ctx: RunContext[AgentDepsT]) -> Tool:
        async def call(**arguments: Any) -> Any:
            valid = tool.args_validator.validate_python(arguments)
            return to_jsonable_python(await self.wrapped.call_tool(name, valid, ctx, tool))

        return Tool(
            call,
            name=_code_mode.program_name(name),
            description=tool.tool_def.description or "",
            schema=tool.tool_def.parameters_json_schema,
            result_schema={},
        )


def _is_called(tool: ToolsetTool[Any]) -> bool:
    return tool.tool_def.kind == "function"
