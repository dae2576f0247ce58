"""Attention over NumPy arrays, on the emulator. bfloat16 is the type of that name of the package ml_dtypes."""

import numpy

from . import _emulated, _library
from ._errors import InvalidArgument
from ._problem import View


def _view(array):
    strides = tuple(stride // array.itemsize for stride in array.strides)
    return View(array.ctypes.data, array.shape, strides, array.dtype.name)


def _held(arrays):
    """The arrays, by name, as contiguous ones."""
    held = {}
    for name, array in arrays.items():
        if not isinstance(array, numpy.ndarray):
            raise InvalidArgument(f"{name} is a {type(array).__name__}; accepted: a NumPy array, as q")
        held[name] = numpy.ascontiguousarray(array)
    return held


def _run(which, inputs, outputs, chosen):
    _emulated.run(which, {name: _view(array) for name, array in inputs.items()},
                  {name: _view(array) for name, array in outputs.items()}, chosen)
    return tuple(outputs.values())


def backward(tensors, chosen):
    """dq, dk, dv and, with a sink, dsink."""
    inputs = _held(tensors)
    outputs = {f"d{name}": numpy.empty(inputs[name].shape, inputs[name].dtype)
               for name in ("q", "k", "v", "sink") if name in inputs}
    return _run(_library.BACKWARD, inputs, outputs, chosen)
