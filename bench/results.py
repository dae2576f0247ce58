"""Results of the suites `backward` and `forward` as `flashback bench --json` and bench/peers.py keep them: one file a process start."""

import json
import math
import statistics
import sys


def load(files):
    """The reports in `files`, all of one suite and of one card."""
    reports = []
    for file in files:
        with open(file) as stream:
            report = json.load(stream)
        if report.get("suite") not in ("backward", "forward", "sweep", "headline"):
            sys.exit(f"{file} holds the suite {report.get('suite')}; it must be backward, forward, sweep or headline")
        reports.append(report)
    suites = {report["suite"] for report in reports}
    if len(suites) > 1:
        sys.exit(f"the files are of several suites: {', '.join(sorted(suites))}; times of one can be compared")
    cards = {report["card"] for report in reports}
    if len(cards) > 1:
        sys.exit(f"the files are of several cards: {', '.join(sorted(cards))}; times of one can be compared")
    return reports


def times(reports):
    """{(cell, protocol): {contender: [milliseconds of each process start]}}, in the order of the files."""
    table = {}
    for report in reports:
        for cell in report["cells"]:
            for contender in cell["contenders"]:
                for timing in contender.get("timings", []):
                    row = table.setdefault((cell["name"], timing["protocol"]), {})
                    row.setdefault(contender["name"], []).append(timing["ms"])
    return table


def gflop(reports):
    return {cell["name"]: cell["gflop"] for report in reports for cell in report["cells"]}


def kind_and_length(cell):
    """("causal gqa fp16", 4096) of the cell named "causal gqa 4096 fp16"."""
    words = cell.split()
    return " ".join(words[:2] + words[3:]), int(words[2])


def length_word(rows):
    return f"{rows // 1024}k" if rows >= 1024 else str(rows)


def ratios(row, slow, fast):
    """How many times as long `slow` takes as `fast`, for each process start in which both ran."""
    return [s / f for s, f in zip(row.get(slow, []), row.get(fast, []))]


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(value) for value in values))
