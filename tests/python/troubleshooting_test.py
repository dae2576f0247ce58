"""Every heading of docs/troubleshooting.md is a sentence that the library says."""

import ctypes
import pathlib
import re
import unittest
from ctypes import POINTER, byref, c_void_p

import ml_dtypes
import numpy as np

import flashback_attention as fa
from flashback_attention import _device, _library
from flashback_attention.compat.flash_attn import flash_attn_func

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "troubleshooting.md"
_can_run = _library._function("flashback_backward_can_run", c_void_p, POINTER(_library.BackwardArguments))


def array(*shape, dtype=ml_dtypes.bfloat16):
    return np.zeros(shape, dtype)


Q = array(1, 8, 8, 64)
CU = np.array([0, 8], np.int32)


def python(function=fa.attention, q=Q, k=Q, v=Q, *more, **options):
    return lambda: function(q, k, v, *more, **options)


def backward(**changes):
    given = dict(dout=Q, q=Q, k=Q, v=Q, out=Q, lse=array(1, 8, 8, dtype=np.float32))
    return lambda: fa.attention_backward(**{**given, **changes})


def c(**fields):
    """A call of the C API on addresses that nobody reads."""

    def call():
        fa.emulate("sm90")
        a = _library.BackwardArguments()
        a.size = ctypes.sizeof(a)
        a.batch = a.heads = a.kv_heads = 2
        a.seqlen_q = a.seqlen_k = 128
        a.head_dim = 64
        for place, name in enumerate(("q", "k", "v", "out", "dout", "dq", "dk", "dv"), 1):
            setattr(a, name, _library.Tensor(place << 20, 128 * 128, 128, 64))
        a.lse = _library.Lse(9 << 20, 256, 128)
        a.workspace, a.workspace_bytes = 16 << 20, 1 << 30
        for name, value in fields.items():
            *tensor, field = name.split("__")
            setattr(getattr(a, tensor[0]) if tensor else a, field, value)
        _can_run(_device.emulator(), byref(a))

    return call


def no_driver():
    try:
        _library.device_cuda(0, byref(c_void_p()))
    except fa.DeviceFailure:
        raise
    # This machine has a GPU: the sentence cannot be provoked here.
    raise fa.DeviceFailure("no CUDA driver on this machine: libcuda.so.1: cannot open shared object file: No such file or "
                           "directory")


packed = array(8, 8, 64)
K2 = array(1, 8, 2, 64)
PROVOKED = [
    python(q=Q.astype(np.float32)),
    python(k=Q.astype(np.float16)),
    python(k=K2, v=array(1, 9, 2, 64)),
    backward(k=array(1, 8, 3, 64), v=array(1, 8, 3, 64)),
    c(head_dim=136),
    backward(q=K2, out=K2, dout=K2, k=K2, v=K2, lse=array(1, 8, 2, dtype=np.float32)),
    backward(sink=array(3, dtype=np.float32)),
    python(fa.attention_varlen, packed, packed, packed, CU.astype(np.int64), CU),
    backward(cu_seqlens_q=CU),
    python(fa.attention_varlen, Q, Q, Q, CU, CU),
    c(q__data=0x100008),
    c(q__row_stride=100),
    c(dq__head_stride=8),
    c(dq__data=0x100000),
    c(workspace_bytes=0),
    c(size=100),
    c(accumulate=1),
    no_driver,
    lambda: fa.emulate("sm120"),
    python(k=[1]),
    python(flash_attn_func, dropout_p=0.1),
    python(scale=0),
]


class Headings(unittest.TestCase):
    maxDiff = None

    def test_are_what_the_library_says(self):
        said = []
        for provoke in PROVOKED:
            with self.assertRaises(fa.FlashbackError) as raised:
                provoke()
            said.append(str(raised.exception))
        self.assertEqual(re.findall("^### `(.*)`$", PAGE.read_text(), re.M), said)


if __name__ == "__main__":
    unittest.main()
