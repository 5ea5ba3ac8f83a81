"""The section of docs/benchmarks.md: tables, notes, versions."""

import pathlib

import plot
from peers import JOBS, PEERS

BEGIN, END = "<!-- peers: written by `just bench-peers` -->", "<!-- /peers -->"
NONE = "—"


def three_digits(value):
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 0.1 else 3
    return f"{value:.{digits}f}"


def time(nanoseconds):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= size:
            return f"{three_digits(nanoseconds / size)} {unit}"
    return f"{nanoseconds:.0f} ns"


def mebibytes(kib):
    return f"{kib / 1024:.1f} MiB"


class Notes:
    """The footnotes of a table."""

    def __init__(self):
        self.texts = []

    def mark(self, text):
        if text not in self.texts:
            self.texts.append(text)
        return f"{NONE} [{self.texts.index(text) + 1}]"

    def lines(self):
        return [f"[{number}] {text}  " for number, text in enumerate(self.texts, 1)]


def table(job, results, missing):
    """Returns the lines of a job's table and its notes."""
    notes = Notes()
    lines = [
        "| peer | runs | p50 | p95 | p99 | × Wattle | peak memory | over an empty process |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for peer in PEERS:
        cells = results.get(job, {}).get(peer.id)
        if peer.id in missing:
            cells = [notes.mark(f"Missing: {missing[peer.id]}.")] + [NONE] * 6
        elif job in peer.cannot:
            cells = [notes.mark(peer.cannot[job])] + [NONE] * 6
        else:
            like = results[job][peer.like]["p50"] if peer.like else None
            memory = [notes.mark(peer.no_memory), NONE] if peer.no_memory else [
                mebibytes(cells["peak_kib"]),
                mebibytes(max(0, cells["peak_kib"] - cells["empty_kib"])),
            ]
            ratio = three_digits(cells["p50"] / like) if like else NONE
            times = [time(cells[key]) for key in ("p50", "p95", "p99")]
            cells = [f"{cells['samples']:,}", *times, ratio, *memory]
        lines.append(f"| {' | '.join([peer.name, *cells])} |")
    return lines + [""] + notes.lines() + ([""] if notes.texts else [])


def live_table(count, results, missing):
    """Returns the lines of the table of live contexts."""
    lines = ["| peer | memory of each |", "|---|---:|"]
    for peer in PEERS:
        if peer.id in results and peer.id not in missing:
            lines.append(f"| {peer.name} | {three_digits(results[peer.id])} KiB |")
    return lines + [""]


def section(run, plots):
    """Returns the text between the markers, and writes the plots."""
    lines = [BEGIN, "", *run["about"], ""]
    for job, heading in JOBS.items():
        path = plots / f"peers-{job}.svg"
        path.write_text(plot.bars(heading, job, run["results"]))
        lines += [f"### {heading}", "", f"![The times of all peers](plots/{path.name})", ""]
        lines += table(job, run["results"], run["missing"])
    lines += [f"### Memory of {run['contexts']} live contexts", ""]
    lines += live_table(run["contexts"], run["live"], run["missing"])
    return "\n".join([*lines, END])


def replace(page: pathlib.Path, text):
    """Replaces the section between the markers of a page."""
    before, begin, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"{page}: the markers `{BEGIN}` and `{END}` are missing")
    page.write_text(before + text + after)


def faster(results):
    """Returns a sentence for each peer that needs less time than Wattle."""
    sentences = []
    for job in JOBS:
        for peer in PEERS:
            cells = results[job].get(peer.id)
            if cells and peer.like and peer.id != "wattle-catalog":
                ratio = cells["p50"] / results[job][peer.like]["p50"]
                if ratio < 1:
                    sentences.append(f"{job}: {peer.id} takes {ratio:.2f} × {peer.like}")
    return sentences
