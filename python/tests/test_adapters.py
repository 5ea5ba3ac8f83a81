"""The adapters for other packages, where these are installed."""

from __future__ import annotations

from typing import Any

import pytest

LINES = '(each $one (prices (list "pen" "cup")) (out "{} {}" $one.name $one.price))'


def price_list(names: list[str]) -> list[dict[str, Any]]:
    """Returns the prices of things.

    Args:
        names: The names of the things.
    """
    return [{"name": name, "price": len(name)} for name in names]


def test_pydantic_ai_writes_programs_over_a_toolset() -> None:
    pytest.importorskip("pydantic_ai")
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel
    from pydantic_ai.toolsets import FunctionToolset

    from wattle.pydantic_ai import CodeMode

    toolset: FunctionToolset[None] = FunctionToolset()
    toolset.add_function(price_list, name="prices")
    seen: list[Any] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        (tool,) = info.function_tools
        assert tool.name == "run_program"
        assert tool.description is not None and "prices(names: " in tool.description
        last = messages[-1].parts[-1]
        seen.append(getattr(last, "content", None))
        if len(seen) == 1:
            return ModelResponse(
                [ToolCallPart("run_program", {"program": '(prices "not a list")'})]
            )
        if len(seen) == 2:
            return ModelResponse([ToolCallPart("run_program", {"program": LINES})])
        return ModelResponse([TextPart("done")])

    agent = Agent(FunctionModel(model), toolsets=[CodeMode(toolset)])
    assert agent.run_sync("What do a pen and a cup cost?").output == "done"
    assert "EPARSE" in str(seen[1])
    assert seen[2].split() == ["pen", "3", "cup", "3"]


def test_smolagents_runs_programs_over_tools() -> None:
    smolagents = pytest.importorskip("smolagents")
    from wattle.smolagents import ProgramTool

    class Shout(smolagents.Tool):  # type: ignore[misc, name-defined]
        name = "Shout"
        description = "Makes a text loud"
        inputs = {"text": {"type": "string", "description": "The text"}}
        output_type = "string"

        def forward(self, text: str) -> str:
            return text.upper()

    def prices(names: list[str]) -> list[dict[str, Any]]:
        """Returns the prices of things."""
        return price_list(names)

    tool = ProgramTool([Shout(), prices])
    assert "shout(text: " in tool.description
    assert tool(program=LINES).split() == ["pen", "3", "cup", "3"]
    assert tool(program="(out (shout (arg 0)))", args=["hello"]).strip() == "HELLO"
