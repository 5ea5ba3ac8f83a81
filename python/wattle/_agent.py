"""Agents: models that answer each step with a program."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, TypeVar, overload

from wattle import _native, _run, _schema
from wattle._scope import Grants, plain_grants, scope_of

T = TypeVar("T")
U = TypeVar("U")


@dataclasses.dataclass(frozen=True)
class Event:
    """An event of a run.

    The types are ``run_started``, ``model_call_started``, ``model_call_ended``, ``call_started``,
    ``call_ended``, ``retry``, ``artifact`` and ``run_ended``, and for the pieces of texts ``delta``
    (the model's text as received), ``thinking``, ``answer`` (the pieces after the last ``void`` are
    the answer), ``void`` and ``error``.
    """

    #: The type.
    type: str
    #: The fields of the event, such as ``name``, ``args``, ``output`` or ``text``.
    data: dict[str, Any]

    @property
    def text(self) -> str:
        """The text of a piece, or an empty string."""
        return str(self.data.get("text", ""))


@dataclasses.dataclass(frozen=True)
class Report(Generic[T]):
    """The report of a run that has completed."""

    #: The answer: text, or a value of the agent's output type.
    output: T
    #: The answer as text.
    text: str
    #: The id of the run.
    run_id: str
    #: The messages of the run, which the next run takes as its ``history``.
    messages: list[dict[str, Any]]
    #: The exchanges with the model, each with the ``calls`` of its answer.
    model_calls: list[dict[str, Any]]
    #: The number of tokens, and their cost if it is known.
    usage: dict[str, Any]
    #: The data that programs left for the application, by name.
    artifacts: dict[str, bytes]
    #: The whole report.
    data: dict[str, Any]


def _content(data: dict[str, str]) -> bytes:
    return data["text"].encode() if "text" in data else base64.b64decode(data["base64"])


class Agent(Generic[T]):
    """A model with a prompt and tools. Its runs are independent of each other.

    Args:
        model: The name of a model, such as ``openai:gpt-5``. The part before the colon is a
        provider,
            whose key is in the environment.
        base_url: The URL of an endpoint that is compatible with OpenAI.
        api_key: The key for the endpoint.
        cassette: A recording, whose answers replace those of a model.
        prompt: The role and the rules at the beginning of the prompt.
        tools: The Python functions that the model and its programs may call.
        output: The type of the answers: a dataclass, a ``TypedDict``, a model of pydantic, another
        type
            with a JSON form, or a JSON Schema. Without it, an answer is text.
        name: The agent's name. Give one to an agent whose runs are resumed.
        programs: The names or patterns, such as ``file_*``, of the catalog programs that the model
        is
            offered. By default, it is offered all of them.
        folders: Folders with ``.wat`` files, whose programs are added to the catalog.
        memory: Items that the prompt lists as memory.
        grants: What programs may use of the machine.
        store: A folder that keeps the runs, so that they can be resumed.
        traces: A folder for the traces of the runs.
        approve: Approves or denies what a rule of ``grants["ask"]`` asks about.
        max_steps: Maximum number of steps of a run. The default is 12.
        timeout: Maximum duration of a run, in seconds.
        max_tokens: Maximum number of tokens that a run uses.
        max_answer_tokens: Maximum number of tokens of one answer. The default is 4,096.
        temperature: The sampling temperature, from 0 to 2.
    """

    @overload
    def __init__(
        self: Agent[str],
        model: str | None = None,
        *,
        output: None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        cassette: str | os.PathLike[str] | None = None,
        prompt: str | None = None,
        tools: Iterable[Callable[..., Any]] = (),
        name: str | None = None,
        programs: Sequence[str] = (),
        folders: Iterable[str | os.PathLike[str]] = (),
        memory: Sequence[str] = (),
        grants: Grants | None = None,
        store: str | os.PathLike[str] | None = None,
        traces: str | os.PathLike[str] | None = None,
        approve: _run.Approver | None = None,
        max_steps: int | None = None,
        timeout: float | None = None,
        max_tokens: int | None = None,
        max_answer_tokens: int | None = None,
        temperature: float | None = None,
    ) -> None: ...

    @overload
    def __init__(
        self: Agent[U],
        model: str | None = None,
        *,
        output: type[U],
        base_url: str | None = None,
        api_key: str | None = None,
        cassette: str | os.PathLike[str] | None = None,
        prompt: str | None = None,
        tools: Iterable[Callable[..., Any]] = (),
        name: str | None = None,
        programs: Sequence[str] = (),
        folders: Iterable[str | os.PathLike[str]] = (),
        memory: Sequence[str] = (),
        grants: Grants | None = None,
        store: str | os.PathLike[str] | None = None,
        traces: str | os.PathLike[str] | None = None,
        approve: _run.Approver | None = None,
        max_steps: int | None = None,
        timeout: float | None = None,
        max_tokens: int | None = None,
        max_answer_tokens: int | None = None,
        temperature: float | None = None,
    ) -> None: ...

    @overload
    def __init__(
        self: Agent[Any],
        model: str | None = None,
        *,
        output: dict[str, Any],
        base_url: str | None = None,
        api_key: str | None = None,
        cassette: str | os.PathLike[str] | None = None,
        prompt: str | None = None,
        tools: Iterable[Callable[..., Any]] = (),
        name: str | None = None,
        programs: Sequence[str] = (),
        folders: Iterable[str | os.PathLike[str]] = (),
        memory: Sequence[str] = (),
        grants: Grants | None = None,
        store: str | os.PathLike[str] | None = None,
        traces: str | os.PathLike[str] | None = None,
        approve: _run.Approver | None = None,
        max_steps: int | None = None,
        timeout: float | None = None,
        max_tokens: int | None = None,
        max_answer_tokens: int | None = None,
        temperature: float | None = None,
    ) -> None: ...

    def __init__(
        self,
        model: str | None = None,
        *,
        output: Any = None,
        base_url: str | None = None,
        api_key: str | None = None,
        cassette: str | os.PathLike[str] | None = None,
        prompt: str | None = None,
        tools: Iterable[Callable[..., Any]] = (),
        name: str | None = None,
        programs: Sequence[str] = (),
        folders: Iterable[str | os.PathLike[str]] = (),
        memory: Sequence[str] = (),
        grants: Grants | None = None,
        store: str | os.PathLike[str] | None = None,
        traces: str | os.PathLike[str] | None = None,
        approve: _run.Approver | None = None,
        max_steps: int | None = None,
        timeout: float | None = None,
        max_tokens: int | None = None,
        max_answer_tokens: int | None = None,
        temperature: float | None = None,
    ) -> None:
        def path(value: str | os.PathLike[str] | None) -> str | None:
            return None if value is None else os.fspath(value)

        scope = scope_of(tools, folders)
        schema = output if output is None or isinstance(output, dict) else _schema.schema_of(output)
        settings = {
            "name": name,
            "model": {
                "name": model,
                "base_url": base_url,
                "api_key": api_key,
                "cassette": path(cassette),
            },
            "prompt": prompt,
            "output": schema,
            "programs": list(programs),
            "memory": list(memory),
            "grants": plain_grants(grants or {}),
            "store": path(store),
            "traces": path(traces),
            "max_steps": max_steps,
            "timeout": timeout,
            "max_tokens": max_tokens,
            "max_answer_tokens": max_answer_tokens,
            "temperature": temperature,
        }
        self._native = _native.Agent(json.dumps(settings), scope.native)
        self._tools = scope.tools
        self._approve = approve
        self._output = None if isinstance(output, dict) else output

    @property
    def name(self) -> str:
        """The agent's name."""
        return self._native.name

    def run(
        self,
        message: str,
        *,
        history: Sequence[Mapping[str, Any]] = (),
        session: str | None = None,
    ) -> Report[T]:
        """Runs a task and waits for the answer.

        Args:
            message: The task.
            history: The messages of the conversation so far, those of an earlier report.
            session: A label for the run and its events.

        Raises:
            RunFailed: If the run does not complete.
            Parked: If the run waits for a person. Only a run with a store can wait.
        """
        run = self._start(message, history, session, False, None)
        return self._report(_run.wait(run, self._tools, self._approve))

    async def arun(
        self,
        message: str,
        *,
        history: Sequence[Mapping[str, Any]] = (),
        session: str | None = None,
    ) -> Report[T]:
        """Runs a task like :meth:`run`, on the running event loop. Cancelling the task cancels the
        run."""

        def start(waker: _native.Waker) -> _native.Run:
            return self._start(message, history, session, False, waker)

        return self._report(await _run.Session(start, self._tools, self._approve).result())

    def stream(
        self,
        message: str,
        *,
        history: Sequence[Mapping[str, Any]] = (),
        session: str | None = None,
    ) -> AgentRun[T]:
        """Starts a run on the running event loop, whose events can be read as they happen."""

        def start(waker: _native.Waker) -> _native.Run:
            return self._start(message, history, session, True, waker)

        return AgentRun(_run.Session(start, self._tools, self._approve), self._report)

    def resume(self, run_id: str, answers: Mapping[str, _run.Answer] | None = None) -> Report[T]:
        """Resumes a run that waits for approvals, or whose process ended, and waits for the answer.

        Args:
            run_id: The id of the run.
            answers: The answers by the ids of the calls that wait, as ``Parked.pending`` has them.
        """
        run = self._resume(run_id, answers, False, None)
        return self._report(_run.wait(run, self._tools, self._approve))

    async def aresume(
        self, run_id: str, answers: Mapping[str, _run.Answer] | None = None
    ) -> Report[T]:
        """Resumes a run like :meth:`resume`, on the running event loop."""

        def start(waker: _native.Waker) -> _native.Run:
            return self._resume(run_id, answers, False, waker)

        return self._report(await _run.Session(start, self._tools, self._approve).result())

    def close(self) -> None:
        """Closes the store, so that another process can resume its runs at once."""
        self._native.close()

    def _start(
        self,
        message: str,
        history: Sequence[Mapping[str, Any]],
        session: str | None,
        streams: bool,
        waker: _native.Waker | None,
    ) -> _native.Run:
        options = json.dumps({"history": list(history), "session": session})
        return self._native.start(message, options, self._approve is not None, streams, waker)

    def _resume(
        self,
        run_id: str,
        answers: Mapping[str, _run.Answer] | None,
        streams: bool,
        waker: _native.Waker | None,
    ) -> _native.Run:
        given = json.dumps(dict(answers or {}))
        return self._native.resume(run_id, given, "{}", self._approve is not None, streams, waker)

    def _report(self, text: str) -> Report[T]:
        data = json.loads(text)
        output = (
            data["data"] if self._output is None else _schema.convert(self._output, data["data"])
        )
        artifacts = {artifact["name"]: _content(artifact["data"]) for artifact in data["artifacts"]}
        return Report(
            output=output,
            text=data["text"],
            run_id=data["run_id"],
            messages=data["messages"],
            model_calls=data["model_calls"],
            usage=data["usage"],
            artifacts=artifacts,
            data=data,
        )

    def __repr__(self) -> str:
        return f"Agent({self.name!r})"


class AgentRun(Generic[T]):
    """A run in progress. Iterate over it for its events, and await :meth:`result` for its report.

    A run that nobody holds any more is cancelled. ``async with`` cancels it at the end of the
    block::

        async with agent.stream("…") as run:
            async for event in run:
                print(event.type, event.data)
            report = await run.result()
    """

    def __init__(self, session: _run.Session, report: Callable[[str], Report[T]]) -> None:
        self._session = session
        self._report = report

    @property
    def id(self) -> str:
        """The id of the run."""
        return self._session.run.id

    def cancel(self, reason: str = "cancelled by the application") -> None:
        """Cancels the run. Its result is then the exception ``Cancelled``."""
        self._session.cancel(reason)

    async def result(self) -> Report[T]:
        """Waits until the run has ended, and returns its report.

        Raises:
            RunFailed: If the run does not complete.
            Cancelled: If the run was cancelled.
        """
        return self._report(await self._session.result())

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        event = await self._session.next_event()
        if event is None:
            raise StopAsyncIteration
        return Event(event["type"], event)

    async def __aenter__(self) -> AgentRun[T]:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cancel("the block that waited for the run has ended")
