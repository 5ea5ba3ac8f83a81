"""The package in processes: threads, forks, interrupts, the end of the interpreter, memory."""

from __future__ import annotations

import gc
import os
import resource
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import wattle


def run(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_a_forked_process_runs_programs_prepared_by_its_parent() -> None:
    done = run("""
        import os, wattle
        def double(n: int) -> int: return n * 2
        program = wattle.Program("(out (double 21))", tools=[double])
        assert program.run().text.strip() == "42"
        child = os.fork()
        if child == 0:
            text = program.run().text.strip() + wattle.run("(out 1)").text.strip()
            os._exit(0 if text == "421" else 1)
        _, status = os.waitpid(child, 0)
        assert program.run().text.strip() == "42"
        print(os.waitstatus_to_exitcode(status))
    """)
    assert (done.stdout.strip(), done.returncode) == ("0", 0), done.stderr


@pytest.mark.parametrize(
    "program", ["wattle.run('(while 1 (let $x 1))')", "wattle.run('(slow)', tools=[slow])"]
)
def test_an_interrupt_ends_a_run(program: str) -> None:
    code = f"""
        import time, wattle
        def slow() -> str:
            for _ in range(100): time.sleep(0.01)
            return "done"
        wattle.run("(out 1)")
        try:
            print("ready", flush=True)
            {program}
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "interrupted\n"
    assert process.wait(30) == 0


@pytest.mark.parametrize(
    "work", ["wattle.run('(while 1 (let $x 1))')", "wattle.run('(slow)', tools=[slow])"]
)
def test_the_interpreter_ends_while_a_daemon_thread_waits(work: str) -> None:
    done = run(f"""
        import threading, time, wattle
        def slow() -> str:
            time.sleep(0.3)
            return "done"
        wattle.run("(out 1)")
        def work():
            try: {work}
            except wattle.HostError: pass
        threading.Thread(target=work, daemon=True).start()
        time.sleep(0.1)
        print("end")
    """)
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr


def test_a_thread_that_is_not_a_daemon_finishes() -> None:
    done = run("""
        import threading, wattle
        def work(): print(wattle.run("(out 1)").text.strip())
        threading.Thread(target=work).start()
    """)
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


def test_the_command_is_the_library() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "wattle", "exec", "-"],
        input='(out "hello")',
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.returncode) == ("hello\n", 0), done.stderr
    done = subprocess.run(
        [sys.executable, "-m", "wattle", "no-such"], capture_output=True, text=True
    )
    assert done.returncode == 2 and "no-such" in done.stderr


def test_an_interrupt_of_the_command_is_that_of_the_binary(tmp_path: Path) -> None:
    program = tmp_path / "endless.wat"
    program.write_text('(log "x") (while 1 (let $x 1))')
    process = subprocess.Popen(
        [sys.executable, "-m", "wattle", "exec", str(program)], stderr=subprocess.PIPE, text=True
    )
    # The handler is installed before the program runs. The process is interrupted until it notices.
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(0.3)
        except subprocess.TimeoutExpired:
            continue
    assert process.returncode in (130, -signal.SIGINT)


def test_the_command_imports_little() -> None:
    done = run("""
        import sys
        import wattle._command
        print(sorted({"asyncio", "json", "inspect", "typing", "wattle._native"} & set(sys.modules)))
    """)
    assert done.stdout.strip() in ("[]", "['typing']"), done.stdout


def resident() -> int:
    """Returns the resident memory of this process, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def grows(calls: int, limit: int) -> None:
    def double(n: int) -> int:
        return n * 2

    program = wattle.Program("(out (+ (int (arg 0)) 1))")
    with_tool = wattle.Program("(out (double (int (arg 0))))", tools=[double])

    def work(count: int) -> None:
        for number in range(count):
            program.run(number)
        for number in range(count // 100):
            with_tool.run(number)

    work(calls // 10)
    gc.collect()
    before = resident()
    work(calls)
    gc.collect()
    assert resident() - before < limit


def test_memory_does_not_grow() -> None:
    grows(20_000, 8 << 20)


@pytest.mark.slow
def test_memory_does_not_grow_in_a_million_calls() -> None:
    grows(1_000_000, 8 << 20)


def test_the_names_of_the_package_exist() -> None:
    for name in wattle.__all__:
        assert getattr(wattle, name) is not None
    assert os.path.exists(os.path.join(os.path.dirname(wattle.__file__), "py.typed"))
