"""The structs of the ctypes binding against the header that they copy."""

import ctypes
import os
import pathlib
import subprocess
import tempfile
import unittest

from flashback_attention import _library

INCLUDE = pathlib.Path(__file__).parents[2] / "include"
STRUCTS = {"flashback_tensor": _library.Tensor, "flashback_lse": _library.Lse, "flashback_window": _library.Window,
           "flashback_message": _library.Message, "flashback_forward_arguments": _library.ForwardArguments,
           "flashback_backward_arguments": _library.BackwardArguments}
PROBE = """#include <stddef.h>
#include <stdio.h>
#include "flashback/flashback.h"
#define FIELD(s, f) printf(#s "." #f " %zu %zu\\n", offsetof(s, f), sizeof(((s*)0)->f))
int main(void) {{
{body}
  return 0;
}}
"""


def answers(lines):
    """What the C compiler says: a line of the probe's output each, as (words, numbers)."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder, "probe.c"), pathlib.Path(folder, "probe")
        source.write_text(PROBE.format(body="\n".join(lines)))
        subprocess.run([os.environ.get("CC", "cc"), "-std=c99", f"-I{INCLUDE}", source, "-o", program], check=True)
        return subprocess.run([program], check=True, capture_output=True, text=True).stdout.split("\n")[:-1]


class Structs(unittest.TestCase):
    def test_every_field_is_where_the_header_has_it(self):
        lines, expected = [], []
        for c_name, struct in STRUCTS.items():
            for field, *_ in struct._fields_:
                lines.append(f"  FIELD({c_name}, {field});")
                descriptor = getattr(struct, field)
                expected.append(f"{c_name}.{field} {descriptor.offset} {descriptor.size}")
            lines.append(f'  printf("{c_name} %zu\\n", sizeof({c_name}));')
            expected.append(f"{c_name} {ctypes.sizeof(struct)}")
        self.assertEqual(answers(lines), expected)

    def test_numbers_of_the_header(self):
        names = ["FLASHBACK_BF16", "FLASHBACK_F16", "FLASHBACK_INVALID", "FLASHBACK_UNSUPPORTED"]
        numbers = [_library.DTYPES["bfloat16"], _library.DTYPES["float16"]] + list(_library._REFUSALS)
        self.assertEqual(answers([f'  printf("%d\\n", {name});' for name in names]), [str(n) for n in numbers])


if __name__ == "__main__":
    unittest.main()
