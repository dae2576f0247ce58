"""Every block of docs/quickstart.md runs.

    quickstart_test.py BUILD          all but the one of torch, with this Python and the libraries and the command of BUILD
    quickstart_test.py BUILD torch    that one"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[2]


def command(language, text, build, folder):
    """What runs a block."""
    name = {"c": "quick.c", "cpp": "quick.cpp", "python": "quick.py", "sh": "quick.sh"}[language]
    source, program = folder / name, folder / "quick"
    source.write_text(text)
    if language == "python":
        return [sys.executable, "-B", source]
    if language == "sh":
        return ["bash", "-e", source]
    compiler = [os.environ.get("CC", "cc"), "-std=c99"] if language == "c" else [os.environ.get("CXX", "c++"), "-std=c++17"]
    subprocess.run([*compiler, "-Wall", "-Wextra", "-Werror", source, f"-I{ROOT}/include", f"-L{build}", "-lflashback",
                    f"-Wl,-rpath,{build}", "-o", program], check=True)
    return [program]


def main(build, only=""):
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", (ROOT / "docs" / "quickstart.md").read_text(), re.M | re.S)
    ran = []
    for language, text in blocks:
        if ("import torch" in text) != (only == "torch"):
            continue
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(command(language, text, build, pathlib.Path(folder)), check=True, cwd=ROOT,
                           env={**os.environ, "PATH": f"{build}:{os.environ['PATH']}"})
        ran.append(language)
    expected = ["python"] if only == "torch" else ["python", "cpp", "c", "sh"]
    if ran != expected:
        sys.exit(f"quickstart_test: ran {ran}, expected {expected}")


if __name__ == "__main__":
    main(*sys.argv[1:])
