"""Attention under torch on a GPU: values against double precision, and what only a GPU has: streams, graphs, inductor."""

import unittest

import torch

import flashback_attention as fa
from flashback_attention.compat.flash_attn import flash_attn_func, flash_attn_varlen_func


def normal(*shape, dtype=torch.bfloat16, seed=0):
    generator = torch.Generator("cuda").manual_seed(seed)
    return torch.randn(*shape, generator=generator, device="cuda").to(dtype).requires_grad_()


def inputs(rows=300, keys=300, heads=4, kv_heads=4, dim=64, batch=2, dtype=torch.bfloat16):
    return [normal(batch, rows, heads, dim, dtype=dtype, seed=1)] + [
        normal(batch, keys, kv_heads, dim, dtype=dtype, seed=seed) for seed in (2, 3)]


def eager(q, k, v, causal=False, window=(-1, -1), upcast=True):
    """The definition: in double precision, or in the type of q."""
    if upcast:
        q, k, v = (t.double() for t in (q, k, v))
    k, v = (t.repeat_interleave(q.shape[2] // t.shape[2], 2) for t in (k, v))
    scores = torch.einsum("bihd,bjhd->bhij", q, k) * q.shape[-1] ** -0.5
    rows, keys = scores.shape[-2:]
    at = torch.arange(rows, device="cuda")[:, None] + keys - rows
    key = torch.arange(keys, device="cuda")[None]
    hidden = torch.zeros(rows, keys, dtype=torch.bool, device="cuda")
    if causal:
        hidden |= key > at
    if window[0] >= 0:
        hidden |= key < at - window[0]
    if window[1] >= 0:
        hidden |= key > at + window[1]
    weights = scores.masked_fill(hidden, -torch.inf).softmax(-1).masked_fill(hidden, 0)
    return torch.einsum("bhij,bjhd->bihd", weights.nan_to_num(0).to(v.dtype), v)


def int32(*numbers):
    return torch.tensor(numbers, dtype=torch.int32, device="cuda")


@unittest.skipUnless(torch.cuda.is_available(), "needs a GPU")
class Hardware(unittest.TestCase):
    def judged(self, q, k, v, **choices):
        dout = normal(*q.shape, dtype=q.dtype, seed=4).detach()
        results = [(out, *torch.autograd.grad(out, (q, k, v), dout.to(out.dtype))) for out in (
            fa.attention(q, k, v, **choices), eager(q, k, v, **choices), eager(q, k, v, **choices, upcast=False))]
        for name, got, exact, rounded in zip(("out", "dq", "dk", "dv"), *results):
            floor = 2 * ((exact.to(q.dtype) + 0.3 - 0.3) - exact).abs().max()
            limit = 2 * (rounded - exact).abs().max() + floor
            self.assertLessEqual((got - exact).abs().max().item(), limit.item(), name)

    def test_values(self):
        for dtype in torch.bfloat16, torch.float16:
            self.judged(*inputs(dtype=dtype))
            self.judged(*inputs(rows=129, keys=513, dtype=dtype), causal=True)
            self.judged(*inputs(rows=300, keys=200, heads=8, kv_heads=2, dtype=dtype), causal=True)
            self.judged(*inputs(dtype=dtype), window=(40, 7))

    def test_misaligned_and_strided(self):
        q, k, v = inputs()
        expected = fa.attention(q, k, v)
        wide = torch.empty(2, 300, 4, 65, dtype=torch.bfloat16, device="cuda")  # rows that begin 2 bytes off
        wide[..., 1:] = q.detach()
        qkv = torch.stack([q, k, v], 2).detach()  # one tensor, as a model's projection gives
        self.assertTrue(torch.equal(fa.attention(wide[..., 1:], k, v), expected))
        self.assertTrue(torch.equal(fa.attention(*qkv.unbind(2)), expected))

    def test_other_streams(self):
        q, k, v = inputs(rows=2000, keys=2000)
        expected = fa.attention(q, k, v)
        torch.cuda.synchronize()
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            late = torch.zeros_like(q)
            torch.cuda._sleep(50_000_000)
            late.copy_(q)  # attention on another stream would read zeros
            out = fa.attention(late, k, v)
        stream.synchronize()
        self.assertTrue(torch.equal(out, expected))

    def test_graph_replays_with_other_lengths(self):
        q, k, v = (normal(600, 4, 64, seed=seed) for seed in (1, 2, 3))
        cu = int32(0, 200, 600)

        def step():
            out = fa.attention_varlen(q, k, v, cu, cu, causal=True, deterministic=True)
            return (out, *torch.autograd.grad(out.float().pow(2).sum(), (q, k, v)))

        warm = torch.cuda.Stream()
        with torch.cuda.stream(warm):
            step()
        torch.cuda.current_stream().wait_stream(warm)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kept = step()
        for lengths in (0, 200, 600), (0, 1, 599), (0, 300, 300):
            cu.copy_(int32(*lengths))
            graph.replay()
            for got, expected in zip(kept, step()):
                self.assertTrue(torch.equal(got, expected))

    def test_inductor(self):
        def loss(q, k, v):
            return fa.attention(q * 2, k, v, causal=True).float().pow(2).sum()

        leaves = inputs()
        compiled = torch.compile(loss, fullgraph=True)
        for got, expected in zip(torch.autograd.grad(compiled(*leaves), leaves),
                                 torch.autograd.grad(loss(*leaves), leaves)):
            torch.testing.assert_close(got, expected, rtol=0.02, atol=0.02)

    def test_deterministic_under_load(self):
        q, k, v = inputs(rows=1000, keys=1000)
        noise = torch.randn(2048, 2048, device="cuda")
        side = torch.cuda.Stream()
        first = None
        for _ in range(20):
            with torch.cuda.stream(side):
                noise @ noise
            out = fa.attention(q, k, v, deterministic=True)
            gradients = [g.view(torch.int16) for g in torch.autograd.grad(out.sum(), (q, k, v))]
            first = first or gradients
            self.assertTrue(all(torch.equal(a, b) for a, b in zip(gradients, first)))

    def test_devices_are_not_mixed(self):
        q, k, v = inputs()
        with self.assertRaisesRegex(fa.InvalidArgument, "^k is on cpu; accepted: cuda:0, as q$"):
            fa.attention(q, k.cpu(), v)
        cu = torch.tensor([0, 300], dtype=torch.int32)
        with self.assertRaisesRegex(fa.InvalidArgument, "^cu_seqlens_q is on cpu; accepted: cuda:0, as q$"):
            flash_attn_varlen_func(q[0], k[0], v[0], cu, cu, 300, 300)

    def test_flash_attn(self):
        q, k, v = inputs()
        self.assertTrue(torch.equal(flash_attn_func(q, k, v, causal=True), fa.attention(q, k, v, causal=True)))


if __name__ == "__main__":
    unittest.main()
