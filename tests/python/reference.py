"""Attention and its gradients in double precision, of one sequence; and the same with operands of the products rounded
to 16 bits, whose error is the measure of what 16 bits can do. Shares no code with what it judges."""

import numpy as np


def visible(rows, keys, causal=False, window=(-1, -1)):
    """[rows, keys]: which keys each row sees. The last row stands at the last key."""
    at = np.arange(rows)[:, None] + keys - rows
    key = np.arange(keys)[None, :]
    seen = np.ones((rows, keys), bool)
    if causal:
        seen &= key <= at
    if window[0] >= 0:
        seen &= key >= at - window[0]
    if window[1] >= 0:
        seen &= key <= at + window[1]
    return seen


def attention(q, k, v, dout=None, dlse=None, sink=None, scale=None, causal=False, window=(-1, -1), kept=None):
    """A dict: out, lse and, with dout, dq, dk, dv, dsink. q is (rows, heads, channels), k and v have as many heads or a
    divisor of them. `kept` is the 16-bit type that P, dS and out are rounded to."""
    to16 = (lambda x: x) if kept is None else (lambda x: x.astype(kept).astype(np.float64))
    q, k, v = (np.asarray(t, np.float64) for t in (q, k, v))
    group = q.shape[1] // k.shape[1]
    scale = q.shape[2] ** -0.5 if scale is None else scale
    kk, vv = np.repeat(k, group, 1), np.repeat(v, group, 1)
    scores = np.einsum("ihd,jhd->hij", q, kk) * scale
    scores = np.where(visible(len(q), len(k), causal, window), scores, -np.inf)
    weightless = -np.inf if sink is None else np.asarray(sink, np.float64)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        lse = np.logaddexp(np.logaddexp.reduce(scores, axis=-1, initial=-np.inf), weightless)
        p = np.where(np.isfinite(lse)[..., None], np.exp(scores - lse[..., None]), 0)
    result = {"out": to16(np.einsum("hij,jhd->ihd", to16(p), vv)), "lse": lse}
    if dout is None:
        return result
    dout = np.asarray(dout, np.float64)
    delta = np.einsum("ihd,ihd->hi", dout, result["out"]) - (0 if dlse is None else np.asarray(dlse, np.float64))
    ds = to16(p * (np.einsum("ihd,jhd->hij", dout, vv) - delta[..., None]))
    shared = lambda g: g.reshape(len(g), k.shape[1], group, -1).sum(2)
    result["dq"] = to16(np.einsum("hij,jhd->ihd", ds, kk) * scale)
    result["dk"] = to16(shared(np.einsum("hij,ihd->jhd", ds, q) * scale))
    result["dv"] = to16(shared(np.einsum("hij,ihd->jhd", to16(p), dout)))
    if sink is not None:
        with np.errstate(invalid="ignore"):
            weight = np.where(np.isfinite(lse), np.exp(weightless - lse), 0)
        result["dsink"] = -(weight * delta).sum(1)
    return result


def wrong(name, got, exact, rounded, kept):
    """A sentence where `got` is further from `exact` than twice what 16 bits of type `kept` cost plus their floor; else
    None. lse is fp32 and held to 2^-16 of its size."""
    got = np.asarray(got, np.float64)
    if got.shape != exact.shape:
        return f"{name} has the shape {got.shape}, not {exact.shape}"
    if not np.array_equal(np.isneginf(got), np.isneginf(exact)):
        return f"{name} is -inf in other places"
    got, exact, rounded = (x[np.isfinite(exact)] for x in (got, exact, rounded))
    error = np.abs(got - exact).max(initial=0)
    if name == "lse":
        limit = 2**-16 * np.abs(exact).max(initial=1)
    else:
        to16 = lambda x: x.astype(kept).astype(np.float64)
        floor = 2 * np.abs(to16(to16(exact + 0.3) - 0.3) - exact).max(initial=0)
        limit = 2 * np.abs(rounded - exact).max(initial=0) + floor
    return None if error <= limit else f"{name} is off by {error:.3g}; the limit is {limit:.3g}"
