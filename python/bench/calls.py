#!/usr/bin/env python3
"""Compares the overhead of a warm call from Python: a program that adds 1 to its argument, in
Wattle, in Monty and in QuickJS, in one process. Needs the wheel, pydantic-monty and quickjs. Prints
a table."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import pydantic_monty
import quickjs  # type: ignore[import-untyped]

import wattle

ROUNDS = 200
CALLS = 50


def increment(n: int) -> int:
    """Adds 1."""
    return n + 1


def peers() -> dict[str, Callable[[], object]]:
    program = wattle.Program("(out (+ (int (arg 0)) 1))")
    with_tool = wattle.Program("(out (increment (int (arg 0))))", tools=[increment])
    pool = pydantic_monty.Monty().__enter__()
    session = pool.checkout().__enter__()

    def monty_checkout() -> object:
        with pool.checkout() as session:
            return session.feed_run("x + 1", inputs={"x": 1})

    context = quickjs.Context()
    function = context.eval("(x => x + 1)")

    def quickjs_context() -> object:
        return quickjs.Context().eval("(x => x + 1)(1)")

    return {
        "Python: the function itself": lambda: increment(1),
        "Wattle: a prepared program, a new instance": lambda: program.run("1"),
        "Wattle: the program's text, a new instance": lambda: wattle.run(
            "(out (+ (int (arg 0)) 1))", ["1"]
        ),
        "Wattle: a program that calls a Python function": lambda: with_tool.run("1"),
        "pydantic-monty: a new session in a running worker": monty_checkout,
        "pydantic-monty: the same session": lambda: session.feed_run("x + 1", inputs={"x": 1}),
        "quickjs: a new context": quickjs_context,
        "quickjs: a function of one context": lambda: function(1),
    }


def measure(call: Callable[[], object]) -> list[float]:
    """Returns the durations of single calls, in microseconds."""
    times = []
    for _ in range(CALLS):
        started = time.perf_counter_ns()
        call()
        times.append((time.perf_counter_ns() - started) / 1_000)
    return times


def main() -> None:
    calls = peers()
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(CALLS):
            call()
    # In turns, so that all have the same share of the machine's other work.
    for _ in range(ROUNDS):
        for name, call in calls.items():
            times[name] += measure(call)
    print("| call | p50 | p95 |\n|---|---:|---:|")
    for name, own in times.items():
        own.sort()
        print(f"| {name} | {statistics.median(own):.1f} µs | {own[len(own) * 95 // 100]:.1f} µs |")


if __name__ == "__main__":
    main()
