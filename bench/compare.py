#!/usr/bin/env python3
"""Compares results of `flashback bench --suite backward --json`.

  compare.py RESULT...                     ours against each peer: ratios, means, the lower protocol
  compare.py AFTER... --before BEFORE...   ours after against ours before, with a test for noise

Give the files of several process starts. A ratio is how many times as long the other takes. Of two builds the times
relative to a peer (--peer) are compared where both have run it, because the same program runs at another speed when
the card is warmer. A change counts as one when it is three standard errors from 1, by the spread of the process
starts, pooled over all cells."""

import argparse
import math
import statistics

import results

OURS = "flashback"


def against_peer(table, peer):
    cells = {}
    print(f"{peer} / {OURS}: median of process starts, and their range")
    for (cell, protocol), row in table.items():
        values = results.ratios(row, peer, OURS)
        if not values:
            continue
        cells.setdefault(cell, {})[protocol] = statistics.median(values)
        print(f"  {cell:20} {protocol:10} {statistics.median(values):6.3f}  ({min(values):.3f} to {max(values):.3f},"
              f" {len(values)} starts)")
    if not cells:
        return
    lower = {cell: min(of_protocol.values()) for cell, of_protocol in cells.items()}
    worst = min(lower, key=lower.get)
    print(f"  the lower protocol of each of {len(lower)} cells: geometric mean"
          f" {results.geometric_mean(lower.values()):.3f}, least {lower[worst]:.3f} ({worst})")


def changes(before, after, peer):
    """{(cell, protocol): (log of the ratio, variance of a start, starts before, starts after)}"""
    found = {}
    for key in before.keys() & after.keys():
        def logs(row):
            values = results.ratios(row, OURS, peer) if peer else row.get(OURS, [])
            return [math.log(value) for value in values]
        old, new = logs(before[key]), logs(after[key])
        if old and new:
            found[key] = (statistics.fmean(old) - statistics.fmean(new), old, new)
    return found


def against_before(before, after, peer):
    found = changes(before, after, peer)
    squares = sum(sum((x - statistics.fmean(group)) ** 2 for x in group) for _, *both in found.values() for group in both)
    freedom = sum(len(group) - 1 for _, *both in found.values() for group in both)
    if freedom < 4:
        raise SystemExit(f"the files have {freedom} repetitions to tell noise by; give two or more process starts of"
                         " each side, of a few cells")
    deviation = math.sqrt(squares / freedom)
    print(f"before / after{f', relative to {peer}' if peer else ''}: above 1 is faster;"
          f" one start deviates by {100 * deviation:.2f} %")
    for (cell, protocol), (log, old, new) in sorted(found.items()):
        error = deviation * math.sqrt(1 / len(old) + 1 / len(new))
        word = "noise" if abs(log) < 3 * error else "faster" if log > 0 else "SLOWER"
        print(f"  {cell:20} {protocol:10} {math.exp(log):6.3f} +- {error:.3f}  {word}")
    print(f"  geometric mean {math.exp(statistics.fmean(log for log, *_ in found.values())):.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("after", nargs="+", metavar="RESULT")
    parser.add_argument("--before", nargs="+", metavar="RESULT")
    parser.add_argument("--peer", help="relative to whom two builds are compared")
    arguments = parser.parse_args()
    after = results.times(results.load(arguments.after))
    if arguments.before:
        against_before(results.times(results.load(arguments.before)), after, arguments.peer)
        return
    for peer in dict.fromkeys(name for row in after.values() for name in row if name != OURS):
        against_peer(after, peer)


if __name__ == "__main__":
    main()
