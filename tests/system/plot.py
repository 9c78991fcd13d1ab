# SPDX-License-Identifier: Apache-2.0
"""Series of numbers over time: a page with a chart of each (SVG, no library), and their growth."""
import html
import statistics

WIDTH, HEIGHT, LEFT, BELOW = 720, 160, 70, 20
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b")


def chart(title, series):
    """series: {name: [(x, y), ...]}; x in seconds, drawn as minutes."""
    points = [p for line in series.values() for p in line]
    if not points:
        return ""
    far, high = max(p[0] for p in points) or 1, max(p[1] for p in points) or 1
    out = [f"<h2>{html.escape(title)}</h2><svg width={WIDTH + LEFT + 10} height={HEIGHT + BELOW + 10}>"]
    for part in (0, 0.5, 1):
        y = HEIGHT * (1 - part) + 5
        out.append(f'<path d="M{LEFT} {y}h{WIDTH}" stroke="#ddd"/><text x={LEFT - 4} y={y + 4} text-anchor=end>{high * part:,.0f}</text>'
                   f'<text x={LEFT + WIDTH * part} y={HEIGHT + BELOW + 4} text-anchor=middle>{far * part / 60:.1f} min</text>')
    for i, (name, line) in enumerate(series.items()):
        path = " ".join(f"{LEFT + WIDTH * x / far:.1f},{5 + HEIGHT * (1 - y / high):.1f}" for x, y in line)
        colour = COLOURS[i % len(COLOURS)]
        out.append(f'<polyline points="{path}" fill=none stroke="{colour}"/>'
                   f'<text x={LEFT + 8 + 130 * i} y=18 fill="{colour}">{html.escape(name)}</text>')
    return "\n".join(out) + "</svg>"


def page(title, charts, verdicts):
    """charts: {title: series}; verdicts: (held, text)."""
    rows = "\n".join(f"<li>{'held' if held else '<b>BROKEN</b>'}: {html.escape(text)}</li>" for held, text in verdicts)
    return (f"<!doctype html><meta charset=utf-8><title>{html.escape(title)}</title><style>body{{font:14px sans-serif}}"
            f"svg text{{font-size:11px}}</style><h1>{html.escape(title)}</h1><ul>{rows}</ul>"
            + "\n".join(chart(name, series) for name, series in charts.items()))


def growth(line):
    """By how much a series grows from its first point to its last, by the median of the slopes between all
    pairs (Theil and Sen): a few peaks do not count."""
    line = line[::max(1, len(line) // 300)]
    slopes = [(y2 - y1) / (x2 - x1) for i, (x1, y1) in enumerate(line) for x2, y2 in line[i + 1:] if x2 > x1]
    return statistics.median(slopes) * (line[-1][0] - line[0][0]) if slopes else 0.0
