"""examples/train_gpt.py in small, on the emulator: it trains, and flashback's curve is sdpa's."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


def trained(*arguments):
    """What two runs of flashback and one of sdpa keep, and what is said of it."""
    with tempfile.TemporaryDirectory() as folder:
        kept, picture, text = (pathlib.Path(folder, name) for name in ("gpt.json", "gpt.svg", "text"))
        text.write_bytes(b"flashback. " * 200)  # every batch is alike, so that four steps tell
        small = ["--text", text, "--device", "cpu", "--steps", "4", "--batch", "2", "--length", "48", "--layers", "1",
                 "--width", "64"]
        subprocess.run([sys.executable, "-B", EXAMPLES / "train_gpt.py", "--out", kept, *small, *arguments, "flashback:0",
                        "sdpa:0", "flashback:0"], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        said = subprocess.run([sys.executable, "-B", EXAMPLES / "train_gpt_plot.py", kept, "--out", picture], check=True,
                              capture_output=True, text=True).stdout
        return json.loads(kept.read_text())["runs"], said, picture.read_text()


class TrainGpt(unittest.TestCase):
    def test_curves_are_one(self):
        for packed in [], ["--packed", "--document", "20"]:
            (first, sdpa, second), said, picture = trained("--deterministic", *packed)
            for a, b in zip(first["losses"], sdpa["losses"]):
                self.assertAlmostEqual(a, b, delta=0.01)
            self.assertLess(first["losses"][-1], first["losses"][0] - 0.05)
            self.assertEqual(first["weights"], second["weights"])
            self.assertNotEqual(first["weights"], sdpa["weights"])
            self.assertIn("sdpa, seed 0: last loss", said)
            self.assertEqual(picture.count("<polyline"), 3)


if __name__ == "__main__":
    unittest.main()
