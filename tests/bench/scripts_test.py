"""The scripts that read kept results."""

import contextlib
import io
import math
import os
import re
import sys
import unittest
import unittest.mock
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../bench"))
import compare  # noqa: E402
import page  # noqa: E402
import peers  # noqa: E402
import plot  # noqa: E402
import results  # noqa: E402


def report(ours, peer, cells=("dense mha 1024", "causal gqa 2048")):
    """A process start in which ours and the peer take so many milliseconds in every cell and protocol."""
    timings = lambda ms: [{"protocol": protocol, "ms": ms} for protocol in ("short", "sustained")]
    return {"suite": "backward", "card": "H200", "date": "2026-11-29T00:00:00Z",
            "cells": [{"name": name, "gflop": 1000,
                       "contenders": [{"name": "flashback", "timings": timings(ours)},
                                      {"name": "fa3", "timings": timings(peer)}]} for name in cells]}


def printed(function, *arguments):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        function(*arguments)
    return out.getvalue()


class Compare(unittest.TestCase):
    def test_ratio_is_of_one_process(self):
        # The second start is on a warmer card: both are slower, the ratio is the same.
        table = results.times([report(4, 5), report(6, 7.5)])
        text = printed(compare.against_peer, table, "fa3")
        self.assertIn("geometric mean 1.250, least 1.250", text)

    def test_noise_is_told_from_change(self):
        before = results.times([report(4 * f, 5) for f in (0.99, 1.0, 1.01)])
        same = results.times([report(4 * f, 5) for f in (0.995, 1.005, 1.01)])
        faster = results.times([report(3.6 * f, 5) for f in (0.99, 1.0, 1.01)])
        slower = results.times([report(4.4 * f, 5) for f in (0.99, 1.0, 1.01)])
        self.assertEqual(printed(compare.against_before, before, same, "fa3").count("noise"), 4)
        self.assertEqual(printed(compare.against_before, before, faster, "fa3").count("faster\n"), 4)
        self.assertEqual(printed(compare.against_before, before, slower, None).count("SLOWER"), 4)
        self.assertIn(f"geometric mean {1 / 0.9:.3f}", printed(compare.against_before, before, faster, "fa3"))

    def test_one_start_tells_no_noise(self):
        table = results.times([report(4, 5)])
        with self.assertRaises(SystemExit):
            compare.against_before(table, table, "fa3")

    def test_cells_that_were_not_timed_are_left_out(self):
        wrong = report(4, 5)
        for contender in wrong["cells"][0]["contenders"]:
            del contender["timings"]
        self.assertNotIn(("dense mha 1024", "short"), results.times([wrong]))


class Plot(unittest.TestCase):
    def test_points_are_tflops(self):
        reports = [report(4, 5), report(8, 5), report(4, 5)]
        panels = plot.series(reports, "short")
        self.assertTrue(math.isclose(panels["dense mha"]["flashback"][1024], 1000 / 4))
        root = xml.etree.ElementTree.fromstring(plot.draw(reports, "short"))
        titles = [title.text for title in root.iter("{http://www.w3.org/2000/svg}title")]
        self.assertEqual(len(titles), 4)


class Page(unittest.TestCase):
    def test_is_fresh(self):
        root = os.path.join(os.path.dirname(__file__), "../..")
        with open(os.path.join(root, "docs/measured.md")) as written:
            self.assertEqual(written.read(), page.page(os.path.join(root, "docs/results")),
                             "write it again: bench/page.py > docs/measured.md")

    def test_who_takes_no_part_has_a_dash(self):
        both = report(4, 5, ["dense mha 1024", "window mha 1024 fp16"])
        del both["cells"][1]["contenders"][1]
        lines = page.table_of([both])
        self.assertIn("| dense mha | 250: 1.25 / 1.25 |", lines)
        self.assertIn("| window mha fp16 | 250: - |", lines)


class Peers(unittest.TestCase):
    def test_protocols_are_those_of_the_command(self):
        with open(os.path.join(os.path.dirname(__file__), "../../bench/protocol.h")) as header:
            text = header.read()
        for p in peers.PROTOCOLS:
            words = [f'"{p["name"]}"', p["rounds"], p["idle_ms"], p["warm_calls"], p["warm_ms"], p["timed_calls"],
                     p["timed_ms"], "true" if p["turns"] else "false"]
            self.assertIn("{" + ", ".join(map(str, words)) + "}", text)

    def test_order_is_that_of_the_command(self):
        script = []
        def run(turns):
            script.clear()
            protocol = {"rounds": 2, "idle_ms": 0, "warm_calls": 1, "warm_ms": 0, "timed_calls": 2, "timed_ms": 0,
                        "turns": turns}
            def once(contender):
                script.append("F")
                contender()
                return len(script)
            peers.take_times(protocol, [lambda: script.append("a"), lambda: script.append("b")], once, lambda: None)
            return "".join(script)
        self.assertEqual(run(True), "abFaFbFbFa" "baFbFaFaFb")
        self.assertEqual(run(False), "aFaFa" "bFbFb" "bFbFb" "aFaFa")

    def test_wrong_contenders_are_not_timed_and_right_ones_in_operations_over_the_median(self):
        class Gpu:
            torch = unittest.mock.MagicMock()
            def __init__(self, other):
                self.other = other
            def contenders(self, cell):
                return {"flashback": (lambda: [1.0], None), "cudnn": (lambda: [self.other], None)}
            def cover(self, contenders):
                pass
            def once(self, enqueue):
                return 2.0
            def distance(self, a, b):
                return abs(a - b)
        cell, = peers.chosen("dense,mha,4k")
        protocol = {**peers.PROTOCOLS[0], "idle_ms": 0}
        wrong = peers.measure(Gpu(1.1), cell, [protocol], "forward")["contenders"]
        self.assertEqual([contender["check"]["ok"] for contender in wrong], [True, False])
        self.assertNotIn("timings", wrong[0])
        right = peers.measure(Gpu(1.0), cell, [protocol], "forward")["contenders"]
        # 1e9 operations in a thousandth of a second are 1e12 in one.
        self.assertEqual(right[1]["timings"][0]["tflops"], cell["gflop"] / 2)

    def test_arguments_are_those_of_the_header(self):
        with open(os.path.join(os.path.dirname(__file__), "../../bench/peer.h")) as header:
            code = re.sub(r"/\*.*?\*/", "", header.read(), flags=re.S)
        body = re.search(r"struct flashback_peer_arguments \{(.*?)\n\}", code, re.S).group(1)
        types = {"int64_t": peers.ctypes.c_int64, "int": peers.ctypes.c_int, "float": peers.ctypes.c_float,
                 "flashback_peer_tensor": peers.PeerTensor}
        fields = [(name.strip(), peers.ctypes.c_void_p if pointer else types[of])
                  for of, pointer, names in re.findall(r"(?:const )?(\w+)(\*?) ([\w, ]+);", body)
                  for name in names.split(",")]
        self.assertEqual(fields, peers.PeerArguments._fields_)

    def test_cells(self):
        self.assertEqual(len(peers.chosen("")), 24)
        self.assertEqual([cell["name"] for cell in peers.chosen("causal,gqa,4096")], ["causal gqa 4096"])
        cell, = peers.chosen("window,mqa,2k,d128,fp16,packed,deterministic")
        self.assertEqual(cell["name"], "window mqa 2048 d128 fp16 packed deterministic")
        self.assertEqual((cell["batch"], cell["heads"], cell["kv_heads"]), (32, 16, 1))
        # The first 1024 rows see 1 to 1024 keys, the others 1025.
        self.assertAlmostEqual(cell["gflop"], 10e-9 * 32 * 16 * 128 * (1024 * 1025 / 2 + 1024 * 1025))
        with self.assertRaises(SystemExit):
            peers.chosen("3k")


if __name__ == "__main__":
    unittest.main()
