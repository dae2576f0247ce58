#!/usr/bin/env python3
"""Draws TFLOP/s over the sequence length, one panel a mask and kind of heads, one line a contender.

  plot.py RESULT... --protocol sustained --out backward.svg

Give the files of several process starts: a point is their median."""

import argparse
import math
import statistics

import results

WIDTH, HEIGHT, LEFT, TOP = 420, 260, 56, 34  # of a panel; of its axes in it
COLOURS = ["#d62728", "#1f77b4", "#2ca02c", "#9467bd", "#8c564b", "#7f7f7f"]


def series(reports, protocol):
    """{panel: {contender: {seqlen: TFLOP/s}}}"""
    work = results.gflop(reports)
    panels = {}
    for (cell, of_protocol), row in results.times(reports).items():
        if of_protocol == protocol:
            panel, seqlen = results.kind_and_length(cell)
            for contender, ms in row.items():
                panels.setdefault(panel, {}).setdefault(contender, {})[seqlen] = (
                    work[cell] / statistics.median(ms))  # Gflop a ms
    return panels


def panel_svg(x0, y0, title, lines, colours, lengths, most):
    def x(seqlen):
        span = math.log2(lengths[-1] / lengths[0]) or 1
        return x0 + LEFT + (WIDTH - LEFT - 20) * math.log2(seqlen / lengths[0]) / span

    def y(tflops):
        return y0 + HEIGHT - 40 - (HEIGHT - 40 - TOP) * tflops / most

    svg = [f'<text x="{x0 + WIDTH / 2}" y="{y0 + 20}" text-anchor="middle" font-weight="bold">{title}</text>']
    for tflops in range(0, most + 1, 100):
        svg.append(f'<line x1="{x(lengths[0])}" x2="{x(lengths[-1])}" y1="{y(tflops):.1f}" y2="{y(tflops):.1f}"'
                   ' stroke="#ddd"/>')
        svg.append(f'<text x="{x0 + LEFT - 8}" y="{y(tflops) + 4:.1f}" text-anchor="end">{tflops}</text>')
    for seqlen in lengths:
        svg.append(f'<text x="{x(seqlen):.1f}" y="{y0 + HEIGHT - 22}" text-anchor="middle">{results.length_word(seqlen)}</text>')
    for contender, points in lines.items():
        path = " ".join(f"{x(seqlen):.1f},{y(points[seqlen]):.1f}" for seqlen in sorted(points))
        svg.append(f'<polyline points="{path}" fill="none" stroke="{colours[contender]}" stroke-width="2"/>')
        for seqlen, tflops in points.items():
            svg.append(f'<circle cx="{x(seqlen):.1f}" cy="{y(tflops):.1f}" r="3" fill="{colours[contender]}">'
                       f'<title>{contender} {seqlen}: {tflops:.0f} TFLOP/s</title></circle>')
    return svg


def draw(reports, protocol):
    panels = series(reports, protocol)
    if not panels:
        raise SystemExit(f"no file has times of protocol {protocol}")
    points = [(length, value) for lines in panels.values() for of in lines.values() for length, value in of.items()]
    lengths = sorted({length for length, _ in points})
    most = 100 * math.ceil(max(value for _, value in points) / 100)
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}
    rows = math.ceil(len(panels) / 2)
    width, height = 2 * WIDTH, rows * HEIGHT + 76
    card, date = reports[0]["card"], reports[0]["date"][:10]
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif"'
           ' font-size="12">', '<rect width="100%" height="100%" fill="white"/>']
    for i, (title, lines) in enumerate(panels.items()):
        svg += panel_svg(i % 2 * WIDTH, i // 2 * HEIGHT, title, lines, colours, lengths, most)
    for i, name in enumerate(names):
        svg.append(f'<rect x="{60 + 160 * i}" y="{height - 64}" width="14" height="4" fill="{colours[name]}"/>')
        svg.append(f'<text x="{80 + 160 * i}" y="{height - 58}">{name}</text>')
    caption = ["TFLOP/s of the backward pass over rows of a sequence: bf16, head dim 64, 65,536 tokens",
               f"{protocol}, measured on {card}, {date}, median of {len(reports)} process starts"]
    for line, text in enumerate(caption):
        svg.append(f'<text x="60" y="{height - 34 + 18 * line}">{text}</text>')
    return "\n".join(svg + ["</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", metavar="RESULT")
    parser.add_argument("--protocol", default="sustained")
    parser.add_argument("--out", required=True, metavar="FILE")
    arguments = parser.parse_args()
    svg = draw(results.load(arguments.results), arguments.protocol)
    with open(arguments.out, "w") as stream:
        stream.write(svg)


if __name__ == "__main__":
    main()
