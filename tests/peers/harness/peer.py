"""Measures one peer with one job, in a process of its own: `peer.py PEER JOB FOLDER SECONDS`, or
`peer.py PEER live FOLDER COUNT` for the memory of live contexts. Prints a line of JSON."""

import ast
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time

from sample import current_kib, measure, peak_kib

PROGRAMS = pathlib.Path(__file__).parent.parent / "jobs" / "python"

# The job of which contexts are kept alive.
LIVE_JOB = "host"

HOST_FUNCTIONS = {
    "concat": lambda a, b: a + b,
    "upper": lambda s: s.upper(),
    "length": lambda s: len(s),
}

# The same functions, for a process that has no host.
OWN_FUNCTIONS = "concat, upper, length = lambda a, b: a + b, str.upper, len\n"


def timed(function):
    started = time.perf_counter_ns()
    result = function()
    return time.perf_counter_ns() - started, result


def children():
    """Returns the ids of the processes that this one started."""
    found = []
    for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = status.read_text().rpartition(")")[2].split()
            if int(fields[1]) == os.getpid():
                found.append(status.parent.name)
    return found


class MontyWorker:
    """Monty's pool of worker processes. Each run has a new session in a running worker."""

    def __init__(self, program, inputs):
        import pydantic_monty

        self.monty, self.program, self.inputs = pydantic_monty, program, inputs
        self.pool = pydantic_monty.Monty().__enter__()

    def run(self):
        def session():
            with self.pool.checkout() as session:
                return self.feed(session)

        return timed(session)

    def feed(self, session):
        return session.feed_run(self.program, inputs=self.inputs, external_lookup=HOST_FUNCTIONS)

    def live(self, count):
        """Keeps sessions, each in a worker of its own."""
        total = lambda: current_kib() + sum(map(current_kib, children()))
        with self.monty.Monty(max_processes=count + 1) as pool, contextlib.ExitStack() as alive:
            open_one = lambda: self.feed(alive.enter_context(pool.checkout()))
            open_one()
            before = total()
            for _ in range(count):
                open_one()
            return (total() - before) / count

    def peak_kib(self):
        return peak_kib() + sum(map(peak_kib, children()))


class Smolagents:
    """smolagents' interpreter. Each run has a new one."""

    def __init__(self, program, inputs):
        from smolagents.local_python_executor import LocalPythonExecutor

        self.executor, self.program, self.inputs = LocalPythonExecutor, program, inputs

    def run(self):
        return timed(lambda: self.evaluate()[1])

    def evaluate(self):
        executor = self.executor(["json"], additional_functions=HOST_FUNCTIONS)
        executor.send_tools({})
        executor.send_variables(self.inputs)
        return executor, executor(self.program).output

    def live(self, count):
        """Keeps the interpreters of ended programs."""
        first = self.evaluate()
        before = current_kib()
        alive = [self.evaluate() for _ in range(count)]
        return (current_kib() - before) / len([first, *alive][1:])

    def peak_kib(self):
        return peak_kib()


class Process:
    """A new process for each run. The input comes from its standard input."""

    def __init__(self, command, inputs):
        self.command, self.inputs = command, inputs

    def run(self):
        given = "".join(self.inputs.values()).encode()

        def process():
            done = subprocess.run(self.command, input=given, stdout=subprocess.PIPE, check=True)
            return done.stdout.decode().removesuffix("\n")

        return timed(process)

    def peak_kib(self):
        return None


class Python(Process):
    """A new process of the Python that runs this script."""

    PEAK = """
import sys
print(*(line for line in open("/proc/self/status") if line[:5] == "VmHWM"), file=sys.stderr)
"""

    def __init__(self, program, inputs):
        *statements, last = ast.parse(program).body
        statements = [ast.unparse(statement) for statement in statements]
        given = [f"import sys; {name} = sys.stdin.read()" for name in inputs]
        self.script = "\n".join([*given, OWN_FUNCTIONS, *statements, f"print({ast.unparse(last)})"])
        self.python = os.path.realpath(sys.executable)
        super().__init__([self.python, "-c", self.script], inputs)

    def peak_of(self, script):
        given = "".join(self.inputs.values())
        command = [self.python, "-c", f"{script}\n{self.PEAK}"]
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
        return int(done.stderr.split()[1])

    def peak_kib(self):
        return self.peak_of(self.script)

    def empty_kib(self):
        return self.peak_of("")

    def live(self, count):
        """Keeps processes that wait for their input."""
        script = f"{OWN_FUNCTIONS}import sys; print(flush=True); sys.stdin.read()"
        command = [self.python, "-c", script]
        start = lambda: subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        alive = [start() for _ in range(1 + count)]
        for process in alive:
            process.stdout.readline()
        each = [current_kib(process.pid) for process in alive[1:]]
        for process in alive:
            process.communicate()
        return sum(each) / count


PEERS = {
    "monty-worker": MontyWorker,
    "smolagents": Smolagents,
    "python": Python,
    "true": lambda _, inputs: Process(["/bin/true"], inputs),
}


def main(name, job, folder, bound):
    live = job == "live"
    task = json.loads((pathlib.Path(folder) / f"{LIVE_JOB if live else job}.json").read_text())
    program = (PROGRAMS / f"{LIVE_JOB if live else job}.py").read_text()
    empty = peak_kib()
    peer = PEERS[name](program, task["inputs"])
    if live:
        return {"kib_each": peer.live(int(bound))}
    figures = measure(peer.run, task["expected"], float(bound))
    peak = peer.peak_kib()
    empty = peer.empty_kib() if hasattr(peer, "empty_kib") else empty
    return figures | {"peak_kib": peak, "empty_kib": empty if peak else None}


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
