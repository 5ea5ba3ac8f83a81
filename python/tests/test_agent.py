"""Agents, against recordings and a provider on loopback."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import pytest

import wattle

Cassette = Callable[..., Path]

DOUBLE = 'ToolCall::Catalog("double", "21")'


def double(n: int) -> int:
    """Doubles a number."""
    return n * 2


@dataclasses.dataclass
class Answer:
    n: int


def test_an_agent_answers(cassette: Cassette) -> None:
    agent = wattle.Agent(cassette=cassette('ToolCall::Response("four")'), prompt="Be brief.")
    report = agent.run("two and two?")
    assert (report.output, report.text) == ("four", "four")
    assert report.run_id and report.messages and len(report.model_calls) == 1


def test_an_agent_calls_python_functions(cassette: Cassette) -> None:
    agent = wattle.Agent(cassette=cassette(DOUBLE, 'ToolCall::Response("42")'), tools=[double])
    report = agent.run("21 x 2?")
    call = report.model_calls[0]["calls"][0]
    assert (call["name"], call["success"], report.output) == ("double", True, "42")


class TypedAnswer(TypedDict):
    n: int


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (Answer, Answer(42)),
        (TypedAnswer, {"n": 42}),
        (
            {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
            {"n": 42},
        ),
    ],
)
def test_an_answer_has_the_output_type(cassette: Cassette, output: Any, expected: Any) -> None:
    replies = cassette('ToolCall::Response("{\\"n\\": 42}")')
    agent = wattle.Agent(cassette=replies, output=output)
    assert agent.run("?").output == expected


def test_a_model_of_pydantic_is_an_output_type(cassette: Cassette) -> None:
    pydantic = pytest.importorskip("pydantic")
    Model = pydantic.create_model("Model", n=(int, ...))
    replies = cassette('ToolCall::Response("{\\"n\\": 42}")')
    assert wattle.Agent(cassette=replies, output=Model).run("?").output == Model(n=42)


def test_a_provider_on_loopback(provider: Any) -> None:
    provider.replies = [DOUBLE, 'ToolCall::Response("it is 42")']
    agent = wattle.Agent("local", base_url=provider.url, api_key="a-key-for-tests", tools=[double])
    report = agent.run("21 x 2?")
    assert report.output == "it is 42"
    assert provider.keys == ["Bearer a-key-for-tests"] * 2
    assert "double" in str(provider.requests[0]["messages"])


def test_an_async_run(provider: Any) -> None:
    provider.replies = [DOUBLE, 'ToolCall::Response("it is 42")']
    agent = wattle.Agent("local", base_url=provider.url, tools=[double])
    assert asyncio.run(agent.arun("21 x 2?")).output == "it is 42"


def test_a_stream_has_events_and_a_report(provider: Any) -> None:
    provider.replies = [DOUBLE, 'ToolCall::Response("it is 42")']
    agent = wattle.Agent("local", base_url=provider.url, tools=[double])

    async def main() -> None:
        async with agent.stream("21 x 2?") as run:
            events = [event async for event in run]
            report = await run.result()
        types = [event.type for event in events]
        assert types[0] == "run_started" and types[-1] == "run_ended"
        ended = next(event for event in events if event.type == "call_ended")
        assert (ended.data["name"], ended.data["output"]) == ("double", "42")
        after = types[::-1].index("void") if "void" in types else len(types)
        answer = "".join(
            event.text for event in events[len(types) - after :] if event.type == "answer"
        )
        assert answer.strip() == report.output == "it is 42"

    asyncio.run(main())


def long_answer(provider: Any) -> wattle.Agent[str]:
    provider.replies = ['ToolCall::Response("' + "word " * 100 + '")']
    provider.goes_on.clear()
    return wattle.Agent("local", base_url=provider.url)


def test_a_stream_can_be_cancelled(provider: Any) -> None:
    async def main() -> None:
        run = long_answer(provider).stream("talk")
        async for event in run:
            if event.type == "delta":
                run.cancel("enough")
        with pytest.raises(wattle.Cancelled, match="enough"):
            await run.result()

    asyncio.run(main())
    assert provider.left.wait(10)


def test_leaving_the_loop_early_cancels_the_run(provider: Any) -> None:
    async def main() -> None:
        async for event in long_answer(provider).stream("talk"):
            if event.type == "delta":
                break
        gc.collect()
        assert await asyncio.to_thread(provider.left.wait, 10)

    asyncio.run(main())


def test_cancelling_the_task_cancels_the_run(provider: Any) -> None:
    async def main() -> None:
        task = asyncio.create_task(long_answer(provider).arun("talk"))
        while not provider.requests:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(provider.left.wait, 10)

    asyncio.run(main())


def test_a_run_that_fails_has_its_report(cassette: Cassette) -> None:
    agent = wattle.Agent(cassette=cassette(DOUBLE, DOUBLE, DOUBLE), tools=[double], max_steps=2)
    with pytest.raises(wattle.RunFailed) as caught:
        agent.run("?")
    assert caught.value.report["model_calls"] and caught.value.run_id


def test_an_approver_of_an_agent(cassette: Cassette) -> None:
    asked: list[str] = []

    def approve(request: wattle.ApprovalRequest) -> wattle.Answer:
        asked.append(request.questions[0].text)
        return "not today"

    agent = wattle.Agent(
        cassette=cassette(DOUBLE, 'ToolCall::Response("denied")'),
        tools=[double],
        grants={"ask": ["tool:double"]},
        approve=approve,
    )
    report = agent.run("?")
    assert report.output == "denied" and len(asked) == 1
    assert "not today" in str(report.messages)


def test_a_stored_run_is_resumed_with_an_answer(cassette: Cassette, tmp_path: Path) -> None:
    path = cassette(DOUBLE, 'ToolCall::Response("done")')

    def agent() -> wattle.Agent[str]:
        return wattle.Agent(
            cassette=path,
            name="doubler",
            tools=[double],
            grants={"ask": ["tool:double"]},
            approve=lambda request: "later",
            store=tmp_path / "runs",
        )

    first = agent()
    with pytest.raises(wattle.Parked) as caught:
        first.run("?")
    first.close()
    parked = caught.value
    assert len(parked.pending) == 1
    # The second process begins with the answer that comes next.
    cassette('ToolCall::Response("done")')
    report = agent().resume(parked.run_id, {call: True for call in parked.pending})
    assert report.output == "done"


def test_a_history_continues_a_conversation(provider: Any) -> None:
    provider.replies = ['ToolCall::Response("one")', 'ToolCall::Response("two")']
    agent = wattle.Agent("local", base_url=provider.url)
    first = agent.run("the first message")
    agent.run("the second message", history=first.messages)
    assert "the first message" in str(provider.requests[1]["messages"])


def test_invalid_settings_are_named(cassette: Cassette) -> None:
    path = cassette()
    with pytest.raises(wattle.SettingsError, match="temperature"):
        wattle.Agent(cassette=path, temperature=3)
    with pytest.raises(wattle.SettingsError, match="name"):
        wattle.Agent(cassette=path, name="Not a name")
    with pytest.raises(wattle.SettingsError):
        wattle.Agent("openai:gpt-5", cassette=path)
