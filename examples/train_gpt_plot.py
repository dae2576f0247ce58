#!/usr/bin/env python3
"""Draws what train_gpt.py kept, and says how far its curves are apart.

    train_gpt_plot.py gpt.json --out gpt.svg

Above: the loss of every run. Below: how far each run is from the first run of sdpa, averaged over 20 steps; two seeds of sdpa
show what a difference means nothing."""

import argparse
import json
import pathlib

WIDTH, HEIGHT, LEFT, TOP = 720, 250, 60, 30  # of a panel; of its axes in it
COLOURS = ["#d62728", "#1f77b4", "#2ca02c", "#9467bd", "#8c564b"]
AVERAGED = 20


def smooth(values):
    """Means of up to AVERAGED values that end at each."""
    return [sum(values[max(0, i + 1 - AVERAGED):i + 1]) / len(values[max(0, i + 1 - AVERAGED):i + 1])
            for i in range(len(values))]


def apart(run, base):
    return [a - b for a, b in zip(smooth(run["losses"]), smooth(base["losses"]))]


def name(run):
    return f"{run['attention']}, seed {run['seed']}"


def panel(y0, title, curves):
    """An SVG panel of {name: (colour, values)}."""
    values = [value for _, curve in curves.values() for value in curve]
    low, high = min(values), max(values)
    high += (high - low or 1) * 0.05
    steps = max(len(curve) for _, curve in curves.values())
    x = lambda step: LEFT + (WIDTH - LEFT - 20) * step / max(1, steps - 1)
    y = lambda value: y0 + HEIGHT - 30 - (HEIGHT - 30 - TOP) * (value - low) / (high - low)
    svg = [f'<text x="{WIDTH / 2}" y="{y0 + 18}" text-anchor="middle" font-weight="bold">{title}</text>']
    for i in range(5):
        value = low + (high - low) * i / 4
        svg.append(f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#ddd"/>')
        svg.append(f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.3g}</text>')
        step = round((steps - 1) * i / 4)
        svg.append(f'<text x="{x(step):.1f}" y="{y0 + HEIGHT - 12}" text-anchor="middle">{step}</text>')
    for colour, curve in curves.values():
        points = " ".join(f"{x(i):.1f},{y(value):.1f}" for i, value in enumerate(curve))
        svg.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    return svg


def draw(kept):
    runs = list({name(run): run for run in kept["runs"]}.values())
    base = next(run for run in runs if run["attention"] == "sdpa")
    colours = {name(run): COLOURS[i % len(COLOURS)] for i, run in enumerate(runs)}
    height = 2 * HEIGHT + 76
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="white"/>']
    svg += panel(0, "loss over steps", {name(run): (colours[name(run)], run["losses"]) for run in runs})
    svg += panel(HEIGHT, f"loss less that of {name(base)}, means of {AVERAGED} steps",
                 {name(run): (colours[name(run)], apart(run, base)) for run in runs if run is not base})
    for i, run in enumerate(runs):
        svg.append(f'<rect x="{LEFT + 160 * i}" y="{height - 64}" width="14" height="4" fill="{colours[name(run)]}"/>')
        svg.append(f'<text x="{LEFT + 20 + 160 * i}" y="{height - 58}">{name(run)}</text>')
    options = kept["options"]
    lines = (f'GPT of {options["layers"]} layers, width {options["width"]}, head dim 64; {options["batch"]} x '
             f'{options["length"]} bytes a step{", packed documents" if options["packed"] else ""}',
             f'{kept["card"]}, {kept["date"]}, torch {kept["torch"]}')
    for i, line in enumerate(lines):
        svg.append(f'<text x="{LEFT}" y="{height - 32 + 18 * i}">{line}</text>')
    return "\n".join(svg + ["</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kept", metavar="FILE")
    parser.add_argument("--out", required=True, metavar="SVG")
    options = parser.parse_args()
    kept = json.loads(pathlib.Path(options.kept).read_text())
    pathlib.Path(options.out).write_text(draw(kept))
    base = next(run for run in kept["runs"] if run["attention"] == "sdpa")
    for run in kept["runs"]:
        furthest = max(map(abs, apart(run, base)[-max(1, len(run["losses"]) - AVERAGED):]))  # means of AVERAGED steps
        print(f"{name(run)}: last loss {smooth(run['losses'])[-1]:.4f}, at most {furthest:.4f} from {name(base)}; "
              f"{run['tokens_per_second']} tokens/s; weights {run['weights'][:12]}")


if __name__ == "__main__":
    main()
