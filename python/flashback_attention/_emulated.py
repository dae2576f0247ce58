"""A pass over tensors in the host's memory, on the emulator. Its device memory is its own: what a kernel reads is
copied there, what it wrote is copied back, so that a kernel that leaves its tensors is found out."""

import contextlib
import math
from ctypes import byref, c_void_p

from . import _device, _library, _problem

_ITEM_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4, "int32": 4}


def _bytes(view):
    return math.prod(view.shape) * _ITEM_BYTES[view.dtype]


def run(which, inputs, outputs, chosen):
    """Runs pass `which`. `inputs` and `outputs` map names to Views of contiguous host memory."""
    device = _device.emulator()
    with contextlib.ExitStack() as memory:

        def allocate(size):
            address = c_void_p()
            if size:
                _library.allocate(device, size, byref(address))
                memory.callback(_library.release, device, address)
            return address.value

        placed = {name: view._replace(address=allocate(_bytes(view))) for name, view in {**inputs, **outputs}.items()}
        arguments = _problem.arguments(which, placed, chosen)
        arguments.workspace_bytes = _library.workspace_bytes(which, device, arguments)
        arguments.workspace = allocate(arguments.workspace_bytes)
        for name, view in inputs.items():
            if _bytes(view):
                _library.upload(device, placed[name].address, view.address, _bytes(view), None)
        which.run(device, byref(arguments))
        for name, view in outputs.items():
            if _bytes(view):
                _library.download(device, view.address, placed[name].address, _bytes(view), None)
        _library.wait(device, None)
