"""The C library through ctypes: the structs of flashback.h and its functions, refusals as exceptions.

tests/python/library_test.py compares every struct with the header, field by field."""

import ctypes
import pathlib
from ctypes import POINTER, Structure, byref, c_char, c_char_p, c_float, c_int, c_int64, c_size_t, c_void_p
from typing import Any, NamedTuple

from ._errors import DeviceFailure, InvalidArgument, Unsupported

DTYPES = {"bfloat16": 0, "float16": 1}


class Tensor(Structure):
    _fields_ = [("data", c_void_p), ("batch_stride", c_int64), ("row_stride", c_int64), ("head_stride", c_int64)]


class Lse(Structure):
    _fields_ = [("data", c_void_p), ("batch_stride", c_int64), ("head_stride", c_int64)]


class Window(Structure):
    _fields_ = [("bounded", c_int), ("left", c_int64), ("right", c_int64)]


class Message(Structure):
    _fields_ = [("text", c_char * 512)]


_QUESTION = [
    ("size", c_size_t), ("dtype", c_int), ("batch", c_int64), ("heads", c_int64), ("kv_heads", c_int64),
    ("seqlen_q", c_int64), ("seqlen_k", c_int64), ("head_dim", c_int64), ("causal", c_int), ("window", Window),
    ("scale", c_float), ("cu_seqlens_q", c_void_p), ("cu_seqlens_k", c_void_p), ("seqused_q", c_void_p),
    ("seqused_k", c_void_p), ("leave_unused_rows", c_int),
]
_WORKSPACE = [("workspace", c_void_p), ("workspace_bytes", c_size_t), ("stream", c_void_p)]


class ForwardArguments(Structure):
    _fields_ = _QUESTION + [("q", Tensor), ("k", Tensor), ("v", Tensor), ("sink", c_void_p), ("out", Tensor),
                            ("lse", Lse)] + _WORKSPACE


class BackwardArguments(Structure):
    _fields_ = _QUESTION + [
        ("q", Tensor), ("k", Tensor), ("v", Tensor), ("out", Tensor), ("dout", Tensor), ("lse", Lse), ("dlse", Lse),
        ("sink", c_void_p), ("dq", Tensor), ("dk", Tensor), ("dv", Tensor), ("dsink", c_void_p),
        ("fp32_gradients", c_int), ("accumulate", c_int), ("deterministic", c_int),
    ] + _WORKSPACE + [("tensor_memory", c_int), ("signal", c_int)]


def _load():
    path = pathlib.Path(__file__).parent / "lib" / "libflashback.so"
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise ImportError(f"flashback_attention cannot load its library: {error}") from error


_c = _load()


def _function(name, *arguments):
    function = getattr(_c, name)
    function.argtypes = [*arguments, POINTER(Message)]
    function.restype = c_int

    def call(*values):
        message = Message()
        status = function(*values, byref(message))
        if status:
            raise _REFUSALS.get(status, DeviceFailure)(message.text.decode())

    return call


_REFUSALS = {1: InvalidArgument, 2: Unsupported}

device_cuda = _function("flashback_device_cuda", c_int, POINTER(c_void_p))
device_emulator = _function("flashback_device_emulator", c_char_p, c_int, POINTER(c_void_p))
allocate = _function("flashback_allocate", c_void_p, c_size_t, POINTER(c_void_p))
upload = _function("flashback_upload", c_void_p, c_void_p, c_void_p, c_size_t, c_void_p)
download = _function("flashback_download", c_void_p, c_void_p, c_void_p, c_size_t, c_void_p)
wait = _function("flashback_wait", c_void_p, c_void_p)
release = _c.flashback_release
release.argtypes, release.restype = [c_void_p, c_void_p], None


class Pass(NamedTuple):
    """One of the passes that the library runs: the struct it asks for, and its functions, which take the address of one."""

    name: str
    Arguments: Any
    workspace: Any
    run: Any


def _pass(name, arguments):
    return Pass(name, arguments,
                _function(f"flashback_{name}_workspace", c_void_p, c_void_p, POINTER(c_size_t)),
                _function(f"flashback_{name}", c_void_p, c_void_p))


FORWARD = _pass("forward", ForwardArguments)
BACKWARD = _pass("backward", BackwardArguments)


def workspace_bytes(which, device, arguments):
    """Bytes of workspace that a pass needs; refuses what the pass would refuse of shapes and choices."""
    size = c_size_t()
    which.workspace(device, byref(arguments), byref(size))
    return size.value
