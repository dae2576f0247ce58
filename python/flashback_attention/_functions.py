"""What users call. Arrays of NumPy and tensors of torch take the same arguments; each goes to its own face."""

import numpy

from . import _numpy_face
from ._errors import InvalidArgument
from ._problem import choices


def _given(**optional):
    return {name: value for name, value in optional.items() if value is not None}


def attention_backward(dout, q, k, v, out, lse, *, scale=None, causal=False, window=(-1, -1), sink=None,
                       deterministic=False, dlse=None, cu_seqlens_q=None, cu_seqlens_k=None, seqused_q=None,
                       seqused_k=None):
    """Gradients of `attention` over NumPy arrays: (dq, dk, dv), and (dq, dk, dv, dsink) with a sink.

    `out` and `lse` are what the forward pass gave; `dout` and `dlse` the gradients of them (dlse None: zero).
    With cu_seqlens_q and cu_seqlens_k, of `attention_varlen`. Tensors of torch have autograd instead.
    """
    if not isinstance(q, numpy.ndarray):
        raise InvalidArgument(f"q is a {type(q).__name__}; accepted: a NumPy array (tensors of torch have autograd)")
    if (cu_seqlens_q is None) != (cu_seqlens_k is None):
        raise InvalidArgument("one of cu_seqlens_q and cu_seqlens_k is given; accepted: both, or neither")
    tensors = {"q": q, "k": k, "v": v, "out": out, "dout": dout, "lse": lse}
    tensors.update(_given(sink=sink, dlse=dlse, cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k,
                          seqused_q=seqused_q, seqused_k=seqused_k))
    return _numpy_face.backward(tensors, choices(scale, causal, window, deterministic))
