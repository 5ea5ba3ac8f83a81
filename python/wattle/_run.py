"""Runs in progress: waits for their messages, calls their tools, and answers their questions.

The native module calls no Python function. A thread or an event loop that waits for a run reads its
messages here. Tools run on a pool of threads or, if they are async, on the loop of the run.
"""

from __future__ import annotations

import atexit
import contextvars
import dataclasses
import inspect
import json
import os
import threading
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Union

from wattle import _native
from wattle._errors import SettingsError
from wattle._schema import encode
from wattle._tools import Tool

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

#: Maximum number of threads on which tools run.
_MAX_THREADS = 32

#: The reason for the end of a run whose caller was interrupted.
_LEFT = "the caller no longer waits for the run"


@dataclasses.dataclass(frozen=True)
class Question:
    """An effect that needs approval."""

    #: The question as a sentence, such as ```http.get` would reach https://example.com/``.
    text: str
    #: The full name of the function, such as ``http.get`` or ``tool.call``.
    function: str
    #: The effect, such as ``reach https://example.com/``.
    effect: str
    #: The line of the program that causes the effect, if it is known.
    line: int | None


@dataclasses.dataclass(frozen=True)
class ApprovalRequest:
    """A request for the approval of everything that a program would do and that a rule asks
    about."""

    #: The questions. The program runs only if all are approved.
    questions: tuple[Question, ...]
    #: The program's source.
    program: str
    #: The program's arguments.
    args: tuple[str, ...]


#: ``True``, ``False``, ``"always"`` (for the rest of the run), ``"later"`` (a run with a store is
#: then parked), or the reason for a denial.
Answer = Union[bool, str]

#: A function that approves or denies what programs would do. It may be async.
Approver = Callable[[ApprovalRequest], Union[Answer, Awaitable[Answer]]]


def _request(text: str) -> ApprovalRequest:
    fields = json.loads(text)
    questions = tuple(Question(**question) for question in fields["questions"])
    return ApprovalRequest(questions, fields["program"], tuple(fields["args"]))


class _Threads:
    """The threads on which tools run."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self._own = threading.local()

    def start(self, work: Callable[[], None]) -> None:
        # A tool that itself waits for a run occupies its thread until the tools of that run return.
        # They get threads of their own, because the pool may be full of such tools.
        if getattr(self._own, "is_tool", False):
            threading.Thread(target=self._marked, args=(work,), name="wattle-nested-tool").start()
            return
        with self._lock:
            if self._pool is None:
                from concurrent.futures import ThreadPoolExecutor

                self._pool = ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="wattle-tool")
            pool = self._pool
        pool.submit(self._marked, work)

    def _marked(self, work: Callable[[], None]) -> None:
        self._own.is_tool = True
        work()


_threads = _Threads()


def _forget() -> None:
    """Forgets the threads and loops of the parent process, which a forked process does not have."""
    global _threads
    _threads = _Threads()
    _bridges.clear()


def _describe(error: BaseException) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class _Answers:
    """Answers the questions of one run."""

    def __init__(
        self, run: _native.Run, tools: Mapping[str, Tool], approve: Approver | None
    ) -> None:
        self.run = run
        self._tools = tools
        self._approve = approve
        self._context = contextvars.copy_context()

    def work(self, message: tuple[Any, ...]) -> Callable[[], Any]:
        """Returns the function whose result answers a question. The result may be awaitable."""
        if message[0] == "call":
            tool, arguments = self._tools[message[2]], message[3]
            return lambda: tool.call(arguments)
        approve, request = self._approve, _request(message[2])
        assert approve is not None, "a run without an approver asks nothing"
        return lambda: approve(request)

    def is_async(self, message: tuple[Any, ...]) -> bool:
        """Returns true if the function must be called on the event loop."""
        if message[0] == "call":
            return self._tools[message[2]].is_async
        return inspect.iscoroutinefunction(self._approve)

    def answer(self, id: int, value: Any) -> None:
        self.run.answer(id, encode(value))

    def on_thread(self, message: tuple[Any, ...]) -> None:
        """Answers a question on a thread of the pool."""
        id, work, context = message[1], self.work(message), self._context.copy()

        def call() -> None:
            try:
                value = context.run(work)
                if inspect.isawaitable(value):
                    value = context.run(_awaited, value)
                self.answer(id, value)
            except BaseException as error:
                self.run.fail(id, _describe(error))

        _threads.start(call)


def _awaited(value: Awaitable[Any]) -> Any:
    import asyncio

    async def main() -> Any:
        return await value

    return asyncio.run(main())


def wait(run: _native.Run, tools: Mapping[str, Tool], approve: Approver | None) -> Any:
    """Waits for the result of a run on the calling thread."""
    answers = _Answers(run, tools, approve)
    try:
        while True:
            message = run.next()
            if message[0] == "done":
                return message[1]
            if message[0] in ("call", "ask"):
                answers.on_thread(message)
    except BaseException:
        run.cancel(_LEFT)
        raise


class _Bridge:
    """Passes the messages of runs to their sessions on one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.waker = _native.Waker()
        self._loop = weakref.ref(loop)
        self._sessions: weakref.WeakValueDictionary[int, Session] = weakref.WeakValueDictionary()
        self._is_watched = False

    def add(self, session: Session) -> None:
        loop = self._loop()
        if not self._is_watched and loop is not None:
            try:
                loop.add_reader(self.waker.fileno(), self._wake)
            except NotImplementedError as error:
                raise SettingsError("this event loop cannot watch file descriptors") from error
            self._is_watched = True
        self._sessions[session.run.number] = session

    def remove(self, number: int) -> None:
        self._sessions.pop(number, None)
        loop = self._loop()
        if self._is_watched and not self._sessions:
            self._is_watched = False
            if loop is not None and not loop.is_closed():
                loop.remove_reader(self.waker.fileno())

    def _wake(self) -> None:
        for number in self.waker.take():
            session = self._sessions.get(number)
            if session is not None:
                session.read()


_bridges: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Bridge] = (
    weakref.WeakKeyDictionary()
)


class Session:
    """A run that is awaited on an event loop."""

    def __init__(
        self,
        start: Callable[[_native.Waker], _native.Run],
        tools: Mapping[str, Tool],
        approve: Approver | None,
    ) -> None:
        import asyncio

        loop = asyncio.get_running_loop()
        bridge = _bridges.get(loop)
        if bridge is None:
            bridge = _bridges[loop] = _Bridge(loop)
        self._bridge = bridge
        self._loop = loop
        self._news = asyncio.Event()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self.events: deque[dict[str, Any]] = deque()
        self._result: Any = None
        self._error: BaseException | None = None
        self.is_done = False
        self.run = start(bridge.waker)
        self._answers = _Answers(self.run, tools, approve)
        bridge.add(self)
        # Messages that arrived before the bridge knew the session woke nobody.
        self.read()

    def read(self) -> None:
        """Reads the messages that have arrived."""
        while not self.is_done:
            try:
                message = self.run.poll()
            except BaseException as error:
                self._end(None, error)
                return
            if message is None:
                return
            kind = message[0]
            if kind == "event":
                self.events.append(json.loads(message[1]))
                self._news.set()
            elif kind == "done":
                self._end(message[1], None)
            elif kind == "abandoned":
                task = self._tasks.pop(message[1], None)
                if task is not None:
                    task.cancel()
            elif self._answers.is_async(message):
                self._tasks[message[1]] = self._loop.create_task(
                    _answer(self._answers, message, self._tasks)
                )
            else:
                self._answers.on_thread(message)

    def _end(self, result: Any, error: BaseException | None) -> None:
        self._result, self._error, self.is_done = result, error, True
        self._bridge.remove(self.run.number)
        # A run that has ended needs no answers.
        for task in self._tasks.values():
            task.cancel()
        self._news.set()

    async def next_event(self) -> dict[str, Any] | None:
        """Waits for the next event. Returns `None` after the last one."""
        while not self.events:
            if self.is_done:
                return None
            self._news.clear()
            await self._wait()
        return self.events.popleft()

    async def result(self) -> Any:
        """Waits for the result."""
        while not self.is_done:
            self._news.clear()
            await self._wait()
        if self._error is not None:
            raise self._error
        return self._result

    async def _wait(self) -> None:
        try:
            await self._news.wait()
        except BaseException:
            self.cancel(_LEFT)
            raise

    def cancel(self, reason: str) -> None:
        """Cancels the run and the tools that it waits for."""
        if not self.is_done:
            self.run.cancel(reason)
            for task in self._tasks.values():
                task.cancel()

    def __del__(self) -> None:
        run = getattr(self, "run", None)
        if run is not None and not self.is_done:
            run.cancel(_LEFT)
            self._bridge.remove(run.number)


def _answer(
    answers: _Answers, message: tuple[Any, ...], tasks: dict[int, asyncio.Task[None]]
) -> Coroutine[Any, Any, None]:
    """Returns the task that answers a question on the event loop. It does not keep its session."""
    id, work = message[1], answers.work(message)

    async def main() -> None:
        try:
            value = work()
            answers.answer(id, await value if inspect.isawaitable(value) else value)
        except Exception as error:
            answers.run.fail(id, _describe(error))
        except BaseException:
            answers.run.fail(id, "the call was cancelled")
            raise
        finally:
            tasks.pop(id, None)

    return main()


os.register_at_fork(after_in_child=_forget)
# Threads that wait in the native module must return before the interpreter shuts down.
atexit.register(_native.close)
