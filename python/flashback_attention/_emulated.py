"""A pass over tensors in the host's memory, on the emulator. Its device memory is its own: what a kernel reads is
copied there, what it wrote is copied back, so that a kernel that leaves its tensors is found out."""

import contextlib
import math
from ctypes import byref, c_void_p

from . import _library

_ITEM_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4, "int32": 4}


def _bytes(view):
    return math.prod(view.shape) * _ITEM_BYTES[view.dtype]


def run(question, inputs, outputs):
    """Asks `question` of Views of contiguous host memory: inputs, then outputs, in the order of the question's views."""
    with contextlib.ExitStack() as memory:

        def allocate(size):
            address = c_void_p()
            if size:
                _library.allocate(question.device, size, byref(address))
                memory.callback(_library.release, question.device, address)
            return address.value or 0

        placed = [allocate(_bytes(view)) for view in (*inputs, *outputs)]
        for view, address in zip(inputs, placed):
            if address:
                _library.upload(question.device, address, view.address, _bytes(view), None)
        question.enqueue(placed, allocate(question.workspace_bytes), 0)
        for view, address in zip(outputs, placed[len(inputs):]):
            if address:
                _library.download(question.device, view.address, address, _bytes(view), None)
        _library.wait(question.device, None)
