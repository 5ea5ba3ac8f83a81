"""Plots as SVG, readable in light and in dark surroundings."""

import math
from html import escape

from peers import PEERS

WIDTH, LEFT, RIGHT, TOP, ROW = 840, 330, 80, 44, 24
# The distance of two lines of text.
LINE = 16

STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .title { font-weight: 600 }
  .grid { stroke: #d1d9e0 }
  .bar { fill: #8c959f }
  .own { fill: #0969da }
  .tail { stroke: #59636e; stroke-width: 2 }
  .line0, .line1 { fill: none; stroke: #0969da; stroke-width: 2 }
  .line1 { stroke-dasharray: 6 4 }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc }
    .grid { stroke: #3d444d }
    .bar { fill: #656c76 }
    .own { fill: #4493f8 }
    .tail { stroke: #9198a1 }
    .line0, .line1 { stroke: #4493f8 }
  }
"""

UNITS = {0: "1 ns", 3: "1 µs", 6: "1 ms", 9: "1 s"}


def bars(heading, job, results):
    """Returns a plot of the medians, with lines up to the 99th percentile. The scale is
    logarithmic."""
    import report

    rows = [(peer, results[job][peer.id]) for peer in PEERS if peer.id in results[job]]
    low = math.floor(math.log10(min(cells["p50"] for _, cells in rows)))
    high = math.ceil(math.log10(max(cells["p99"] for _, cells in rows)))
    x = lambda value: LEFT + (math.log10(value) - low) / (high - low) * (WIDTH - LEFT - RIGHT)
    height = TOP + ROW * len(rows) + 28
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(heading)}: median times, lower is better</title>",
        f"<style>{STYLE}</style>",
        f'<text class="title" x="8" y="20">{escape(heading)}</text>',
    ]
    for power in range(low, high + 1):
        at = x(10**power)
        parts.append(f'<path class="grid" d="M{at:.1f} {TOP - 8}V{height - 24}"/>')
        if power in UNITS:
            place = f'x="{at:.1f}" y="{height - 6}" text-anchor="middle"'
            parts.append(f"<text {place}>{UNITS[power]}</text>")
    for index, (peer, cells) in enumerate(rows):
        y = TOP + ROW * index
        name = peer.name.replace("*", "").replace("`", "")
        own = " own" if peer.id.startswith("wattle") else ""
        median, tail = x(cells["p50"]), x(cells["p99"])
        parts += [
            f'<text x="{LEFT - 8}" y="{y + 13}" text-anchor="end">{escape(name)}</text>',
            f'<path class="bar{own}" d="M{LEFT} {y + 1}H{median:.1f}v16H{LEFT}z"/>',
            f'<path class="tail" d="M{median:.1f} {y + 9}H{tail:.1f}"/>',
            f'<text x="{tail + 6:.1f}" y="{y + 13}">{report.time(cells["p50"])}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


def lines(heading, unit, across, series):
    """Returns a plot of one line per series. A series is a list of pairs (x, y). Both axes begin
    at 0."""
    left, right, top, bottom = 80, 170, 44, 260
    most = [max(pair[axis] for pairs in series.values() for pair in pairs) for axis in (0, 1)]
    ticks = [step(value) for value in most]
    ends = [math.ceil(value / tick) * tick for value, tick in zip(most, ticks)]
    x = lambda value: left + value / ends[0] * (WIDTH - left - right)
    y = lambda value: bottom - value / ends[1] * (bottom - top)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 48}" role="img">',
        f"<title>{escape(heading)} in {unit}, by the number of {across}</title>",
        f"<style>{STYLE}</style>",
        f'<text class="title" x="8" y="20">{escape(heading)} ({unit})</text>',
        f'<text x="{(left + WIDTH - right) / 2}" y="{bottom + 40}" text-anchor="middle">{across}</text>',
    ]
    for count in range(round(ends[1] / ticks[1]) + 1):
        value = count * ticks[1]
        parts += [
            f'<path class="grid" d="M{left} {y(value):.1f}H{WIDTH - right}"/>',
            f'<text x="{left - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value:g}</text>',
        ]
    for count in range(round(ends[0] / ticks[0]) + 1):
        value = count * ticks[0]
        place = f'x="{x(value):.1f}" y="{bottom + 20}" text-anchor="middle"'
        parts.append(f"<text {place}>{value:,.0f}</text>")
    for index, pairs in enumerate(series.values()):
        path = "L".join(f"{x(at):.1f} {y(value):.1f}" for at, value in pairs)
        parts.append(f'<path class="line{index}" d="M{path}"/>')
    # Names of lines that end close to each other are written below each other.
    lowest = top - LINE
    for name, pairs in sorted(series.items(), key=lambda line: y(line[1][-1][1])):
        at, value = pairs[-1]
        lowest = max(y(value), lowest + LINE)
        parts.append(f'<text x="{x(at) + 8:.1f}" y="{lowest + 4:.1f}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def step(most):
    """Returns a round distance of ticks, of which 3 to 8 reach `most`."""
    power = 10 ** math.floor(math.log10(most))
    return next(power * part for part in (1, 0.5, 0.2) if most / (power * part) >= 3)
