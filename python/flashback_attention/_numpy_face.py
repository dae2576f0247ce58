"""Attention over NumPy arrays, on the emulator. bfloat16 is the type of that name of the package ml_dtypes."""

import numpy

from . import _device, _emulated, _library, _problem
from ._errors import InvalidArgument
from ._problem import View
from ._question import Question


def _view(array):
    strides = tuple(stride // array.itemsize for stride in array.strides)
    return View(array.ctypes.data, array.shape, strides, array.dtype.name)


def _given(sink, sequences, dlse=None, **needed):
    """Contiguous arrays of those that were given, by name."""
    optional = {"sink": sink, "dlse": dlse,
                **dict(zip(("cu_seqlens_q", "cu_seqlens_k", "seqused_q", "seqused_k"), sequences))}
    given = {}
    for name, array in {**needed, **{name: array for name, array in optional.items() if array is not None}}.items():
        if not isinstance(array, numpy.ndarray):
            raise InvalidArgument(f"{name} is a {type(array).__name__}; accepted: a NumPy array, as q")
        given[name] = numpy.ascontiguousarray(array)
    _problem.check({name: _view(array) for name, array in given.items()})
    return given


def _run(which, inputs, outputs, chosen):
    views = {name: _view(array) for name, array in {**inputs, **outputs}.items()}
    question = Question(which, _device.emulator(), views, chosen)
    _emulated.run(question, [views[name] for name in inputs], [views[name] for name in outputs])
    return tuple(outputs.values())


def forward(q, k, v, sink, sequences, chosen):
    """out and lse."""
    inputs = _given(sink, sequences, q=q, k=k, v=v)
    *batch, rows, heads, _ = q.shape
    outputs = {"out": numpy.empty(q.shape, q.dtype), "lse": numpy.empty((*batch, heads, rows), numpy.float32)}
    return _run(_library.FORWARD, inputs, outputs, chosen)


def backward(dout, q, k, v, out, lse, dlse, sink, sequences, chosen):
    """dq, dk, dv and, with a sink, dsink."""
    inputs = _given(sink, sequences, dlse, q=q, k=k, v=v, out=out, dout=dout, lse=lse)
    outputs = {f"d{name}": numpy.empty(inputs[name].shape, inputs[name].dtype)
               for name in ("q", "k", "v", "sink") if name in inputs}
    return _run(_library.BACKWARD, inputs, outputs, chosen)
