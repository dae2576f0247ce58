"""What users call. Arrays of NumPy and tensors of torch take the same arguments; each goes to its own face."""

import numpy

from . import _numpy_face
from ._errors import InvalidArgument
from ._problem import choices


def attention(q, k, v, *, scale=None, causal=False, window=(-1, -1), sink=None, deterministic=False, return_lse=False):
    """softmax(scale * q k^T, masked) v, by head: `out`, or (out, lse) with `return_lse`.

    q is (batch, rows, heads, head_dim); k and v are (batch, keys, kv_heads, head_dim), where kv_heads divides heads.
    bfloat16 or float16. lse is (batch, heads, rows), float32: the natural logarithm of the softmax's denominator.

    scale          of the scores; None means 1 / sqrt(head_dim)
    causal         row i sees no key after the one where it stands, i + keys - rows: the last row stands at the last key
    window         (left, right): row i sees so many keys before and after where it stands; -1 is no bound
    sink           (heads,): a logit of each head that takes weight and has no value
    deterministic  gradients have the same bits in every run; also when torch.use_deterministic_algorithms says so

    A row that sees no key has an out of 0 and an lse of -inf. Tensors of torch are differentiable, also through lse, and
    run on the GPU they lie on. NumPy arrays, and tensors on the CPU, run on the emulator.
    """
    return _attention(q, k, v, sink, (None, None, None, None), choices(scale, causal, window, deterministic), return_lse)


def attention_varlen(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q=None, max_seqlen_k=None, *, scale=None,
                     causal=False, window=(-1, -1), sink=None, deterministic=False, return_lse=False, seqused_q=None,
                     seqused_k=None):
    """`attention` of sequences of any lengths, packed: q is (rows, heads, head_dim), lse (heads, rows).

    cu_seqlens_q   int32 where q is: sequence b has the rows from cu_seqlens_q[b] up to cu_seqlens_q[b + 1]; so
                   cu_seqlens_k for k and v. Rows past the last number belong to no one: their out and gradients are 0
    seqused_q      int32: only so many rows of each sequence take part; so seqused_k
    max_seqlen_q   not needed and not read, nor is max_seqlen_k: kernels read lengths on the device
    """
    return _attention(q, k, v, sink, (cu_seqlens_q, cu_seqlens_k, seqused_q, seqused_k),
                      choices(scale, causal, window, deterministic), return_lse)


def _attention(q, k, v, sink, sequences, chosen, return_lse):
    if isinstance(q, numpy.ndarray):
        out, lse = _numpy_face.forward(q, k, v, sink, sequences, chosen)
    else:
        from . import _torch_face  # not before someone has a tensor: NumPy does without torch

        out, lse = _torch_face.forward(q, k, v, sink, sequences, chosen)
    return (out, lse) if return_lse else out


def attention_backward(dout, q, k, v, out, lse, *, scale=None, causal=False, window=(-1, -1), sink=None,
                       deterministic=False, dlse=None, cu_seqlens_q=None, cu_seqlens_k=None, seqused_q=None,
                       seqused_k=None):
    """Gradients of `attention` over NumPy arrays: (dq, dk, dv), and (dq, dk, dv, dsink) with a sink.

    `out` and `lse` are what the forward pass gave; `dout` and `dlse` the gradients of them (dlse None: zero).
    With cu_seqlens_q and cu_seqlens_k, of `attention_varlen`. Tensors of torch have autograd instead.
    """
    if not isinstance(q, numpy.ndarray):
        raise InvalidArgument(f"q is a {type(q).__name__}; accepted: a NumPy array (tensors of torch have autograd)")
    return _numpy_face.backward(dout, q, k, v, out, lse, dlse, sink, (cu_seqlens_q, cu_seqlens_k, seqused_q, seqused_k),
                                choices(scale, causal, window, deterministic))
