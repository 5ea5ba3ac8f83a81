"""The peers of the bench, in the order of the tables."""

from dataclasses import dataclass, field

# Jobs in the order of the page, each with the heading of its table.
JOBS = {
    "noop": "A program that does nothing",
    "host": "Three host calls and a loop of 64 rounds",
    "text": "The lines, words and most frequent word of 1 MB of text",
    "sieve": "The sieve of primes below a million",
    "json": "A JSON document of 200 KB: parse, filter, sum",
    "records": "10,000 records of JSON: parse, group, sum, sort, write CSV",
}


@dataclass(frozen=True)
class Peer:
    """A peer. `like` is Wattle's path that it is compared with."""

    id: str
    name: str
    runner: str
    like: str | None = None
    # Why a job cannot be expressed or measured, by the job.
    cannot: dict = field(default_factory=dict)
    # Why the memory cannot be measured.
    no_memory: str | None = None
    has_contexts: bool = True


LIMIT = "It ends a program after 30 seconds or 10 million operations, and the sieve needs more."
TRUE = "`/bin/true` has no input and no output."
FOREIGN = "The memory of a process that does not report it itself is not measured."

PEERS = [
    Peer("wattle-warm", "**Wattle**, cached text", "rust"),
    Peer("wattle-catalog", "**Wattle**, catalog program", "rust", "wattle-warm"),
    Peer("wattle-cold", "**Wattle**, new text", "rust"),
    Peer("wasmtime-warm", "wasmtime, Wattle's settings, compiled module", "rust", "wattle-warm"),
    Peer("wasmtime-cold", "wasmtime, Wattle's settings, new module", "rust", "wattle-cold"),
    Peer("wasmtime-naive", "wasmtime, default settings, new module", "rust", "wattle-cold"),
    Peer("wasmi-warm", "wasmi, translated module", "rust", "wattle-warm"),
    Peer("wasmi-cold", "wasmi, new module", "rust", "wattle-cold"),
    Peer("monty", "Monty, in the process", "rust", "wattle-cold"),
    Peer("monty-worker", "Monty, new session in a worker", "python", "wattle-cold"),
    Peer("smolagents", "smolagents' executor", "python", "wattle-cold", {"sieve": LIMIT}),
    Peer("quickjs", "QuickJS, new context", "rust", "wattle-cold"),
    Peer("node-warm", "node `vm`, new context, compiled script", "node", "wattle-warm"),
    Peer("node-cold", "node `vm`, new context, new text", "node", "wattle-cold"),
    Peer("python", "process: `python3 -c`", "process", "wattle-cold"),
    Peer(
        "true",
        "process: `/bin/true`",
        "process",
        "wattle-cold",
        {job: TRUE for job in JOBS if job != "noop"},
        FOREIGN,
        has_contexts=False,
    ),
]
