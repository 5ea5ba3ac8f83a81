"""A typed agent, its events, and an approval. The answers are recorded, so that it needs no key."""

import asyncio
import dataclasses
import json
import pathlib
import tempfile

import wattle


@dataclasses.dataclass
class Total:
    amount: int


def price(item: str) -> int:
    """Returns the price of an item."""
    return {"pen": 2, "cup": 7}[item]


def approve(request: wattle.ApprovalRequest) -> wattle.Answer:
    for question in request.questions:
        print("approved:", question.text)
    return True


def recording(folder: str) -> pathlib.Path:
    replies = ['ToolCall::Catalog("price", "cup")', 'ToolCall::Response("{\\"amount\\": 7}")']
    lines = [{"wattle_cassette": 1, "model": "recorded"}, *({"reply": reply} for reply in replies)]
    path = pathlib.Path(folder, "replies.jsonl")
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


async def main(folder: str) -> None:
    # With a model: wattle.Agent("openai:gpt-5", …)
    agent = wattle.Agent(
        cassette=recording(folder),
        prompt="You know the prices of things.",
        tools=[price],
        output=Total,
        grants={"ask": ["tool:price"]},
        approve=approve,
    )
    async with agent.stream("What does a cup cost?") as run:
        async for event in run:
            if event.type == "call_ended":
                print(event.data["name"], event.data["output"])
        report = await run.result()
    total: Total = report.output
    print(total.amount)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(folder))
