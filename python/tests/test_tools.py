"""Python functions as tools."""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import datetime
import enum
import threading
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, TypedDict

import pytest

import wattle


@dataclasses.dataclass
class Point:
    """A point of the plane."""

    x: int
    y: int = 0


class Box(TypedDict, total=False):
    name: str
    points: list[Point]


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


def text(program: str, *tools: Any, **options: Any) -> str:
    return wattle.run(program, tools=tools, **options).text.strip()


def test_the_schema_comes_from_the_signature_and_the_docstring() -> None:
    def add_user(
        name: str,
        role: Literal["admin", "guest"] = "guest",
        age: Optional[int] = None,
        tags: list[str] = [],
        *,
        where: Annotated[str, "The town"] = "",
    ) -> dict[str, Any]:
        """Adds a user.

        The user is added at once.

        Args:
            name: The full name
                of the user.
            role (str): The role.
        """
        return {"name": name, "role": role, "age": age, "tags": tags, "where": where}

    tool = wattle.Tool(add_user)
    assert tool.description == "Adds a user.\n\nThe user is added at once."
    properties = tool.schema["properties"]
    assert properties["name"] == {"type": "string", "description": "The full name of the user."}
    assert properties["role"] == {
        "enum": ["admin", "guest"],
        "type": "string",
        "description": "The role.",
        "default": "guest",
    }
    assert properties["age"] == {"type": ["integer", "null"]}
    assert properties["where"]["description"] == "The town"
    assert tool.schema["required"] == ["name"]
    program = (
        '(let $u (add_user "Ada" age: 36)) (out "{} {} {} {}" $u.name $u.role $u.age (len $u.tags))'
    )
    assert text(program, add_user) == "Ada guest 36 0"


@pytest.mark.parametrize(
    "docstring",
    [
        "Adds.\n\nParameters\n----------\nfirst : int\n    The first.\n"
        "second\n    The second.\n\nReturns\n-------\nint",
        "Adds.\n\n:param first: The first.\n:param int second: The second.\n:returns: The sum.",
        "Adds.\n\nArgs:\n    first: The first.\n    second: The second.\n\nReturns:\n    The sum.",
    ],
)
def test_the_usual_docstrings_are_read(docstring: str) -> None:
    def add(first: int, second: int) -> int:
        return first + second

    add.__doc__ = docstring
    tool = wattle.Tool(add)
    described = {name: one.get("description") for name, one in tool.schema["properties"].items()}
    assert tool.description == "Adds."
    assert described == {"first": "The first.", "second": "The second."}


def test_arguments_and_results_have_their_types() -> None:
    def move(point: Point, by: Box, color: Color, day: datetime.date, half: float) -> Point:
        assert isinstance(point, Point) and isinstance(by["points"][0], Point)
        assert color is Color.BLUE and day.year == 2026 and isinstance(half, float)
        return Point(point.x + by["points"][0].x, point.y)

    program = """
      (let $box (obj "points" (list (obj "x" 4))))
      (out (move (obj "x" 1 "y" 2) $box "blue" "2026-01-31" 1))
    """
    assert text(program, move) == '{"x":5,"y":2}'


def test_models_of_pydantic_are_arguments_results_and_outputs() -> None:
    pydantic = pytest.importorskip("pydantic")
    Line = pydantic.create_model("Line", item=(str, ...), price=(float, 1.5))

    def total(lines: Any) -> Any:
        return Line(item="total", price=sum(line.price for line in lines))

    total.__annotations__ = {"lines": list[Line], "return": Line}  # type: ignore[valid-type]
    program = '(let $t (total (list (obj "item" "a") (obj "item" "b" "price" 2)))) (out $t.price)'
    assert text(program, total) == "3.5"


def test_a_string_stays_a_string() -> None:
    def greet(name: str) -> str:
        return f"hello {name}"

    assert text('(out (str.upper (greet "Ada")))', greet) == "HELLO ADA"


def test_arguments_that_do_not_match_never_reach_the_function() -> None:
    called = []

    def half(number: int) -> int:
        called.append(number)
        return number // 2

    with pytest.raises(wattle.ProgramFailed) as caught:
        wattle.run('(out (half "many"))', tools=[half])
    assert caught.value.code in ("EBOUND", "EPARSE") and not called


def test_an_exception_is_a_remote_error_with_its_text() -> None:
    def fail() -> None:
        raise LookupError("no such user")

    with pytest.raises(wattle.ProgramFailed) as caught:
        wattle.run("(lookup)", tools=[wattle.Tool(fail, name="lookup")])
    assert caught.value.code == "EREMOTE"
    assert "LookupError: no such user" in caught.value.reason


def test_a_result_without_a_json_form_is_a_remote_error() -> None:
    def thing() -> Any:
        return threading.Lock()

    with pytest.raises(wattle.ProgramFailed) as caught:
        wattle.run("(thing)", tools=[thing])
    assert "no JSON form" in caught.value.reason


def test_a_slow_function_times_out_and_the_others_run_on() -> None:
    release = threading.Event()

    @wattle.tool(timeout=0.05)
    def slow() -> str:
        release.wait(10)
        return "late"

    try:
        with pytest.raises(wattle.ProgramFailed) as caught:
            wattle.run("(out (slow))", tools=[slow])
        assert caught.value.code == "ETIME"
        assert wattle.run("(out 1)").text.strip() == "1"
    finally:
        release.set()


def test_functions_that_block_do_not_block_other_runs() -> None:
    gate = threading.Barrier(5)

    def meet() -> str:
        gate.wait(20)
        return "met"

    program = wattle.Program("(out (meet))", tools=[meet])
    results: list[str] = []
    threads = [
        threading.Thread(target=lambda: results.append(program.run().text.strip()))
        for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == ["met"] * 5


def test_a_tool_runs_programs_with_tools() -> None:
    def depth(level: int) -> int:
        if level == 0:
            return 0
        inner = wattle.run(f"(out (depth {level - 1}))", tools=[depth])
        return int(inner.text) + 1

    assert text("(out (depth 5))", depth) == "5"


def test_nested_tools_do_not_wait_for_a_thread_of_the_pool() -> None:
    callers = 40

    def leaf() -> int:
        return 1

    def root() -> int:
        return int(wattle.run("(out (leaf))", tools=[leaf]).text)

    # There are more callers than threads in the pool, and each tool needs another one.
    program = wattle.Program("(out (root))", tools=[root])
    results: list[str] = []
    work = lambda: results.append(program.run().text.strip())
    threads = [threading.Thread(target=work) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == ["1"] * callers


def test_an_async_function_is_a_tool() -> None:
    async def later(n: int) -> int:
        await asyncio.sleep(0)
        return n + 1

    assert text("(out (later 1))", later) == "2"
    assert asyncio.run(wattle.arun("(out (later 1))", tools=[later])).text.strip() == "2"


def test_async_tools_run_on_the_loop_of_the_run() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        seen = []

        async def where() -> str:
            seen.append(asyncio.get_running_loop() is loop)
            return "here"

        outcome = await wattle.arun("(out (where))", tools=[where])
        assert outcome.text.strip() == "here" and seen == [True]

    asyncio.run(main())


def test_a_blocking_function_does_not_block_the_loop() -> None:
    async def main() -> None:
        free = threading.Event()

        def hold() -> str:
            assert free.wait(20)
            return "free"

        run = asyncio.create_task(wattle.arun("(out (hold))", tools=[hold]))
        await asyncio.sleep(0.05)
        free.set()
        assert (await run).text.strip() == "free"

    asyncio.run(main())


def test_context_variables_are_those_of_the_caller() -> None:
    user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")

    def who() -> str:
        return user.get()

    user.set("Ada")
    assert text("(out (who))", who) == "Ada"


def test_an_approver_decides() -> None:
    def pay(amount: int) -> str:
        return f"paid {amount}"

    asked: list[wattle.ApprovalRequest] = []

    def approve(request: wattle.ApprovalRequest) -> wattle.Answer:
        asked.append(request)
        return True if len(asked) == 1 else "too dear"

    options: dict[str, Any] = {"grants": {"ask": ["tool:pay"]}, "approve": approve}
    assert text("(out (pay 3))", pay, **options) == "paid 3"
    assert asked[0].questions[0].function == "tool.call"
    with pytest.raises(wattle.ProgramFailed, match="too dear"):
        text("(out (pay 3))", pay, **options)

    async def approve_later(request: wattle.ApprovalRequest) -> wattle.Answer:
        await asyncio.sleep(0)
        return True

    options["approve"] = approve_later
    assert text("(out (pay 4))", pay, **options) == "paid 4"
    outcome = asyncio.run(wattle.arun("(out (pay 5))", tools=[pay], **options))
    assert outcome.text.strip() == "paid 5"
    # Without an approver, what a rule asks about is denied.
    with pytest.raises(wattle.ProgramFailed):
        text("(out (pay 3))", pay, grants={"ask": ["tool:pay"]})


def test_functions_that_cannot_be_tools_are_named() -> None:
    def star(*names: str) -> None: ...
    def odd(lock: threading.Event) -> None: ...
    def file_read(path: str) -> str: ...  # type: ignore[empty-body]

    with pytest.raises(wattle.SettingsError, match="star.*names"):
        wattle.Tool(star)
    with pytest.raises(wattle.SettingsError, match="odd.*lock.*Event"):
        wattle.Tool(odd)
    with pytest.raises(wattle.SettingsError, match="is taken"):
        wattle.run("(out 1)", tools=[file_read])


def test_methods_and_callable_objects_are_tools() -> None:
    class Counter:
        def __init__(self) -> None:
            self.count = 0

        def add(self, by: int) -> int:
            """Adds to the count."""
            self.count += by
            return self.count

    counter = Counter()
    assert text("(add 2) (out (add 3))", counter.add) == "5"


def test_cancelling_the_task_ends_the_run_and_its_tools(tmp_path: Path) -> None:
    async def main() -> None:
        started, stopped = asyncio.Event(), asyncio.Event()

        async def endless() -> str:
            started.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                stopped.set()
                raise
            return "never"

        task = asyncio.create_task(wattle.arun("(out (endless))", tools=[endless]))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(stopped.wait(), 10)

    asyncio.run(main())


def test_time_out_of_a_tool_cancels_its_task() -> None:
    async def main() -> None:
        stopped = asyncio.Event()

        @wattle.tool(timeout=0.05)
        async def endless() -> str:
            try:
                await asyncio.sleep(60)
            finally:
                stopped.set()
            return "never"

        with pytest.raises(wattle.ProgramFailed) as caught:
            await wattle.arun("(out (endless))", tools=[endless])
        assert caught.value.code == "ETIME"
        await asyncio.wait_for(stopped.wait(), 10)

    asyncio.run(main())


def test_many_runs_on_one_loop() -> None:
    async def main() -> None:
        async def double(n: int) -> int:
            await asyncio.sleep(0.001)
            return n * 2

        program = wattle.Program("(out (double (int (arg 0))))", tools=[double])
        outcomes = await asyncio.gather(*(program.arun(n) for n in range(200)))
        assert [int(one.text) for one in outcomes] == [n * 2 for n in range(200)]

    asyncio.run(main())
    # Another loop has a bridge of its own.
    asyncio.run(main())
