"""The two functions of the package flash_attn, by their names and arguments.

    from flashback_attention.compat.flash_attn import flash_attn_func, flash_attn_varlen_func

A head_dim that is no multiple of 8 is filled up with zeros, as that package does. What differs: a row that sees no key has an
lse of -inf; there is no dropout, ALiBi, softcap or paged cache, and each is refused with a sentence."""

from .._errors import Unsupported
from .._functions import attention, attention_varlen

_VECTOR_CHANNELS = 8  # kernels take any multiple of so many


def _refuse(dropout_p, softcap, alibi_slopes, block_table=None):
    for name, value, accepted in (("dropout_p", dropout_p, 0.0), ("softcap", softcap, 0.0),
                                  ("alibi_slopes", alibi_slopes, None), ("block_table", block_table, None)):
        if value is not accepted and (accepted is None or value != accepted):
            given = "a tensor" if accepted is None else value
            raise Unsupported(f"{name} is {given}; no kernel of flashback_attention has this option; accepted: {accepted}")


def _call(function, q, k, v, *sequences, softmax_scale, return_attn_probs, **choices):
    channels = q.shape[-1]
    missing = -channels % _VECTOR_CHANNELS
    if missing:
        from torch.nn.functional import pad  # not before it is needed: NumPy does without torch

        softmax_scale = channels ** -0.5 if softmax_scale is None else softmax_scale
        q, k, v = (pad(tensor, (0, missing)) for tensor in (q, k, v))
    out, lse = function(q, k, v, *sequences, scale=softmax_scale, return_lse=True, **choices)
    out = out[..., :channels] if missing else out
    return (out, lse, None) if return_attn_probs else out  # without dropout there is no mask of it to return


def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0,
                    alibi_slopes=None, deterministic=False, return_attn_probs=False):
    """out, or (out, softmax_lse, None) with return_attn_probs."""
    _refuse(dropout_p, softcap, alibi_slopes)
    return _call(attention, q, k, v, softmax_scale=softmax_scale, causal=causal, window=window_size,
                 deterministic=deterministic, return_attn_probs=return_attn_probs)


def flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p=0.0,
                           softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, alibi_slopes=None,
                           deterministic=False, return_attn_probs=False, block_table=None):
    """out, or (out, softmax_lse, None) with return_attn_probs. The longest lengths are not read."""
    _refuse(dropout_p, softcap, alibi_slopes, block_table)
    return _call(attention_varlen, q, k, v, cu_seqlens_q, cu_seqlens_k, softmax_scale=softmax_scale, causal=causal,
                 window=window_size, deterministic=deterministic, return_attn_probs=return_attn_probs)
