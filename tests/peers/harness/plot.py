"""Plots as SVG, readable in light and in dark surroundings."""

import math
from html import escape

from peers import PEERS

WIDTH, LEFT, RIGHT, TOP, ROW = 840, 330, 80, 44, 24

STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .title { font-weight: 600 }
  .grid { stroke: #d1d9e0 }
  .bar { fill: #8c959f }
  .own { fill: #0969da }
  .tail { stroke: #59636e; stroke-width: 2 }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc }
    .grid { stroke: #3d444d }
    .bar { fill: #656c76 }
    .own { fill: #4493f8 }
    .tail { stroke: #9198a1 }
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
