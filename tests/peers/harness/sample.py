"""Measuring in Python, as the crate's module `sample` does in Rust."""

import time

MAX_SAMPLES = 20_000
MIN_SAMPLES = 5


def kib(path, key):
    """Returns a field of a file in /proc, in KiB."""
    with open(path) as file:
        return next(int(line.split()[1]) for line in file if line.startswith(key))


def peak_kib(process="self"):
    """Returns the maximum of a process's resident memory so far."""
    return kib(f"/proc/{process}/status", "VmHWM:")


def current_kib(process="self"):
    """Returns a process's proportional share of resident memory."""
    return kib(f"/proc/{process}/smaps_rollup", "Pss:")


def measure(run, expected, seconds):
    """Runs a job until the time is over, and returns the figures.

    `run` returns the nanoseconds that the peer took, and the result. The first run is not timed.
    """
    _, result = run()
    if result != expected:
        raise SystemExit(f"expected {expected!r}, found {result!r}")
    end = time.monotonic() + seconds / 10
    while time.monotonic() < end:
        run()
    times, end = [], time.monotonic() + seconds
    while len(times) < MIN_SAMPLES or (len(times) < MAX_SAMPLES and time.monotonic() < end):
        times.append(run()[0])
    times.sort()
    percentile = lambda n: times[-(-len(times) * n // 100) - 1]
    percentiles = {f"p{n}": percentile(n) for n in (50, 95, 99)}
    return {"samples": len(times), **percentiles}
