#!/usr/bin/env python3
"""Writes docs/measured.md from the results that docs/results keeps: tables of every suite, with card, date and command.

  page.py [RESULTS-DIRECTORY] > docs/measured.md"""

import os
import statistics
import sys

import results

HEAD = """# Measured speed

<!-- Written by `bench/page.py`, which a test repeats; change that file, not this one. -->

A number is TFLOP/s of ours, in the sustained protocol where it ran; behind it stands, for each other contender, how
many times as long it takes, in the short and in the sustained protocol. Above 1 ours is faster. [benchmarks.md](benchmarks.md) says
what is timed and how; the files are in `docs/results`, one a process start, and medians are over the starts.
"""
# A series of files, and what it is.
SERIES = [("h200-backward-", "The backward pass beside FlashAttention-3"),
          ("h200-wide-", "The backward pass at head dimension 128 beside FlashAttention-3"),
          ("h200-headline-", "The published headline's seven rows of the backward pass, beside FlashAttention-3"),
          ("h200-sweep-", "The published sweep's 124 configurations of the backward pass, beside FlashAttention-3"),
          ("h200-short-", "The backward pass of short sequences beside FlashAttention-3"),
          ("h200-forward-", "The forward pass beside FlashAttention-3"),
          ("h200-torch-backward-", "The backward pass through PyTorch, beside cuDNN and FlashAttention-2"),
          ("h200-torch-backward-fp16-", "The backward pass in fp16 through PyTorch, beside cuDNN and FlashAttention-2"),
          ("h200-torch-backward-wide-",
           "The backward pass at head dimension 128 through PyTorch, beside cuDNN and FlashAttention-2"),
          ("h200-torch-forward-", "The forward pass through PyTorch, beside FlashAttention-2, cuDNN and FlashAttention-3"),
          ("h200-torch-forward-wide-",
           "The forward pass at head dimension 128 through PyTorch, beside FlashAttention-2 and cuDNN")]
OURS = "flashback"


def entry(times, work, cell, others):
    """451: 1.16 / 1.11, of one cell; of more contenders a pair each, a dash where one takes no part."""
    of_protocol = {protocol: row for (of, protocol), row in times.items() if of == cell}
    def pair(name):
        ratios = [results.ratios(row, name, OURS) for row in of_protocol.values()]
        return " / ".join(f"{statistics.median(values):.2f}" for values in ratios if values) or "-"
    ms = statistics.median(list(of_protocol.values())[-1][OURS])
    return f"{work[cell] / ms:.0f}: " + ", ".join(pair(name) for name in others)


def table_of(reports):
    times, work = results.times(reports), results.gflop(reports)
    cells = list(dict.fromkeys(cell for cell, _ in times))
    others = list(dict.fromkeys(name for row in times.values() for name in row if name != OURS))
    lengths = sorted({results.kind_and_length(cell)[1] for cell in cells})
    rows = {}
    for cell in cells:
        kind, length = results.kind_and_length(cell)
        rows.setdefault(kind, {})[length] = entry(times, work, cell, others)
    lines = [f"Behind the colon: {', then '.join(others)}.", "",
             "| | " + " | ".join(results.length_word(length) for length in lengths) + " |",
             "|---" * (len(lengths) + 1) + "|"]
    for kind, of_length in rows.items():
        lines.append(f"| {kind} | " + " | ".join(of_length.get(length, "") for length in lengths) + " |")
    return lines


def summary(reports):
    """The lower protocol of each cell, against each contender."""
    times = results.times(reports)
    lines = []
    for peer in dict.fromkeys(name for row in times.values() for name in row if name != OURS):
        lower = {}
        for (cell, _), row in times.items():
            values = results.ratios(row, peer, OURS)
            if values:
                lower[cell] = min(lower.get(cell, float("inf")), statistics.median(values))
        worst = min(lower, key=lower.get)
        lines.append(f"* {peer}: the lower protocol of each of {len(lower)} cells is"
                     f" {results.geometric_mean(lower.values()):.3f} in the geometric mean and {lower[worst]:.3f} at the"
                     f" least ({worst}).")
    return lines


def page(directory):
    lines = [HEAD]
    for prefix, title in SERIES:
        files = sorted(os.path.join(directory, name) for name in os.listdir(directory)
                       if name.startswith(prefix) and name.endswith(".json") and name[len(prefix):-5].isdigit())
        if not files:
            continue
        reports = results.load(files)
        first = reports[0]
        starts = "one process start" if len(files) == 1 else f"{len(files)} process starts"
        lines += [f"## {title}", "",
                  f"Measured on an {first['card'].removeprefix('NVIDIA ')} (driver {first['driver']}), {first['date'][:10]}, "
                  f"{starts}, commit {first['commit']}:", "", f"    {first['command']}", ""]
        lines += table_of(reports) + [""] + summary(reports) + [""]
    return "\n".join(lines).rstrip("\n") + "\n"


if __name__ == "__main__":
    here = os.path.join(os.path.dirname(__file__), "../docs/results")
    sys.stdout.write(page(sys.argv[1] if len(sys.argv) > 1 else here))
