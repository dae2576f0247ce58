"""Attention as an operator of torch, on the emulator: values and gradients against double precision, and what torch asks
of an operator."""

import contextlib
import unittest

import ml_dtypes
import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import flashback_attention as fa
import reference
from flashback_attention import _emulated, _torch_face
from flashback_attention.compat.flash_attn import flash_attn_func, flash_attn_varlen_func

OPS = torch.ops.flashback_attention
KEPT = {torch.bfloat16: ml_dtypes.bfloat16, torch.float16: np.float16}


def normal(*shape, dtype=torch.bfloat16, seed=0, grad=True):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).to(dtype).requires_grad_(grad)


def inputs(rows=40, keys=40, heads=2, kv_heads=2, dim=64, batch=1, **more):
    return [normal(batch, rows, heads, dim, seed=1, **more)] + [
        normal(batch, keys, kv_heads, dim, seed=seed, **more) for seed in (2, 3)]


def double(tensor):
    return None if tensor is None else tensor.detach().to(torch.float64).numpy()


def int32(*numbers):
    return torch.tensor(numbers, dtype=torch.int32)


@contextlib.contextmanager
def runs():
    """The questions of every pass that runs inside."""
    seen, run = [], _emulated.run

    def noted(question, inputs, outputs):
        seen.append(question)
        return run(question, inputs, outputs)

    _emulated.run = noted
    try:
        yield seen
    finally:
        _emulated.run = run


class Values(unittest.TestCase):
    def judged(self, q, k, v, sink=None, dlse=None, **choices):
        """Compares out, lse and every gradient of the one sequence there is."""
        out, lse = fa.attention(q, k, v, return_lse=True, sink=sink, **choices)
        dout = normal(*q.shape, dtype=q.dtype, seed=4, grad=False)
        loss = (out.float() * dout.float()).sum()
        if dlse is not None:
            loss = loss + (lse * dlse).sum()
        leaves = [t for t in (q, k, v, sink) if t is not None]
        gradients = torch.autograd.grad(loss, leaves)
        kept = KEPT[q.dtype]
        exact, rounded = (
            reference.attention(*(double(t)[0] for t in (q, k, v, dout)), None if dlse is None else double(dlse)[0],
                                double(sink), kept=kept, **choices) for kept in (None, kept))
        for name, got in zip(("out", "lse", "dq", "dk", "dv", "dsink"), (out, lse, *gradients)):
            value = double(got) if name == "dsink" else double(got)[0]
            self.assertIsNone(reference.wrong(name, value, exact[name], rounded[name], kept))
        self.assertEqual([g.dtype for g in gradients], [t.dtype for t in leaves])

    def test_masks(self):
        self.judged(*inputs(rows=40, keys=70))
        self.judged(*inputs(rows=70, keys=40), causal=True)
        self.judged(*inputs(rows=70, keys=70), window=(9, 3), scale=0.2)

    def test_grouped_queries_in_fp16(self):
        self.judged(*inputs(heads=4, kv_heads=1, dtype=torch.float16), causal=True)

    def test_sink_and_gradient_through_lse(self):
        self.judged(*inputs(), sink=normal(2, dtype=torch.float32, seed=5), dlse=normal(1, 2, 40, dtype=torch.float32,
                                                                                       grad=False, seed=6))

    def test_sink_of_16_bits(self):
        sink = normal(2, seed=5)
        out = fa.attention(*inputs(), sink=sink)
        self.assertEqual(torch.autograd.grad(out.sum(), sink)[0].dtype, torch.bfloat16)

    def test_loss_of_lse_alone(self):
        q, k, v = inputs()
        _, lse = fa.attention(q, k, v, return_lse=True)
        dq, dk, dv = torch.autograd.grad(lse.sum(), (q, k, v))
        self.assertTrue(dq.any() and dk.any())
        self.assertFalse(dv.any())

    def test_packed_sequences_equal_separate_ones(self):
        q, k, v = (normal(70, 2, 64, seed=seed) for seed in (1, 2, 3))
        cu = int32(0, 25, 25, 60)  # an empty one, and rows of no one
        out, lse = fa.attention_varlen(q, k, v, cu, cu, 35, 35, causal=True, return_lse=True)
        gradients = torch.autograd.grad(out.float().pow(2).sum(), (q, k, v))
        self.assertEqual(tuple(lse.shape), (2, 70))
        for rows in slice(0, 25), slice(25, 60):
            parts = [t.detach()[None, rows].requires_grad_() for t in (q, k, v)]
            alone = fa.attention(*parts, causal=True)
            self.assertTrue(torch.equal(alone[0], out[rows]))
            for part, whole in zip(torch.autograd.grad(alone.float().pow(2).sum(), parts), gradients):
                torch.testing.assert_close(part[0], whole[rows], rtol=0.02, atol=0.02)
        for tensor in (out, *gradients):
            self.assertFalse(tensor[60:].any())

    def test_layouts(self):
        q, k, v = inputs()
        expected = torch.autograd.grad(fa.attention(q, k, v).sum(), (q, k, v))  # dout of sum() has no strides at all
        head_first = [t.detach().transpose(1, 2).contiguous().transpose(1, 2).requires_grad_() for t in (q, k, v)]
        channel_first = [t.detach().transpose(1, 3).contiguous().transpose(1, 3).requires_grad_() for t in (q, k, v)]
        for layout in head_first, channel_first:
            got = torch.autograd.grad(fa.attention(*layout).sum(), layout)
            self.assertTrue(all(torch.equal(a, b) for a, b in zip(got, expected)))

    def test_nothing(self):
        for q, k, v in inputs(batch=0), inputs(rows=0), inputs(keys=0):
            out = fa.attention(q, k, v)
            self.assertFalse(out.any())
            self.assertFalse(any(g.any() for g in torch.autograd.grad(out.sum(), (q, k, v))))


class Operator(unittest.TestCase):
    def test_opcheck(self):
        for q, k, v in inputs(), inputs(rows=33, keys=17, batch=2, heads=4):
            torch.library.opcheck(OPS.forward.default, (q, k, v, None, None, None, None, None, None, True, -1, -1, False,
                                                        True))
        sink, cu = normal(2, dtype=torch.float32), int32(0, 15, 40)
        packed = [t[0].detach().requires_grad_() for t in inputs()]
        torch.library.opcheck(OPS.forward.default, (*packed, sink, cu, cu, None, None, 0.1, False, 5, 5, False, True))
        q, k, v = (t.detach() for t in inputs())
        out, lse = fa.attention(q, k, v, return_lse=True)
        torch.library.opcheck(OPS.backward.default, (q, k, v, out, out, lse, None, None, None, None, None, None, None,
                                                     False, -1, -1, False))

    def test_compiles_whole(self):
        def loss(q, k, v, sink, cu):
            dense, lse = fa.attention(q * 2, k, v, causal=True, sink=sink, return_lse=True)
            packed = fa.attention_varlen(q[0], k[0], v[0], cu, cu, window=(8, 0))
            return dense.float().sum() + lse.sum() + packed.float().pow(2).sum() + flash_attn_func(q, k, v).sum()

        leaves = [*inputs(), normal(2, dtype=torch.float32, seed=5)]
        cu = int32(0, 15, 40)
        eager = torch.autograd.grad(loss(*leaves, cu), leaves)
        compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
        for got, expected in zip(torch.autograd.grad(compiled(*leaves, cu), leaves), eager):
            torch.testing.assert_close(got, expected)

    def test_one_graph_for_all_lengths(self):
        compiled = torch.compile(lambda q, k, v: fa.attention(q, k, v, causal=True), fullgraph=True, backend="aot_eager",
                                 dynamic=True)
        for rows in 40, 41:
            q, k, v = inputs(rows=rows, keys=rows)
            self.assertTrue(torch.equal(compiled(q, k, v), fa.attention(q, k, v, causal=True)))

    def test_straight_or_through_torch_s_dispatch(self):
        q, k, v = inputs()
        operands = q, k, v, None, None, None, None, None, None, True, -1, -1, False, True
        outs = fa.attention(q, k, v, causal=True), OPS.forward.default(*operands)[0]
        self.assertTrue(torch.equal(*outs))
        straight, dispatched = (torch.autograd.grad(out.float().pow(2).sum(), (q, k, v)) for out in outs)
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(straight, dispatched)))

    def test_who_watches_operators_sees_them(self):
        class Watch(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, arguments=(), options=None):
                seen.append(str(function))
                return function(*arguments, **(options or {}))

        seen = []
        q, k, v = inputs()
        with Watch():
            torch.autograd.grad(fa.attention(q, k, v).sum(), q)
        self.assertIn("flashback_attention.forward.default", seen)
        self.assertIn("flashback_attention.backward.default", seen)

    def test_a_question_is_asked_once(self):
        first, other = (inputs(rows=37, grad=False, **more) for more in ({}, {"dtype": torch.float16}))
        second = [t * 2 for t in first]
        with runs() as seen:
            fa.attention(*first)
            again = fa.attention(*second)
            fa.attention(*other)
        self.assertIs(seen[0], seen[1])
        self.assertIsNot(seen[0], seen[2])
        _torch_face._call.cache_clear()
        self.assertTrue(torch.equal(again, fa.attention(*second)))

    def test_determinism_is_torch_s(self):
        q, k, v = inputs()
        with runs() as seen:
            for deterministic, globally in (False, False), (True, False), (False, True):
                out = fa.attention(q, k, v, deterministic=deterministic)
                torch.use_deterministic_algorithms(globally)
                try:
                    torch.autograd.grad(out.sum(), q)
                finally:
                    torch.use_deterministic_algorithms(False)
        self.assertEqual([question.arguments.deterministic for question in seen if question.which.name == "backward"],
                         [0, 1, 1])

    def test_no_second_order(self):
        q, k, v = inputs()
        dq, = torch.autograd.grad(fa.attention(q, k, v).sum(), q, create_graph=True)
        with self.assertRaisesRegex(fa.Unsupported, "^the gradient of a gradient of attention was asked for; "):
            dq.sum().backward()

    def test_without_gradients_nothing_is_kept(self):
        q, k, v = inputs()
        with torch.no_grad():
            self.assertIsNone(fa.attention(q, k, v).grad_fn)


class FlashAttn(unittest.TestCase):
    def test_same_functions(self):
        q, k, v = inputs(rows=40, keys=40)
        out, lse, mask = flash_attn_func(q, k, v, 0.0, 0.2, True, (5, -1), return_attn_probs=True)
        ours = fa.attention(q, k, v, scale=0.2, causal=True, window=(5, -1), return_lse=True)
        self.assertTrue(torch.equal(out, ours[0]) and torch.equal(lse, ours[1]) and mask is None)
        cu = int32(0, 10, 40)
        packed = [t[0] for t in (q, k, v)]
        self.assertTrue(torch.equal(flash_attn_varlen_func(*packed, cu, cu, 30, 30, causal=True),
                                    fa.attention_varlen(*packed, cu, cu, causal=True)))

    def test_channels_are_filled_up(self):
        q, k, v = inputs(dim=59)
        zeros = torch.zeros(1, 40, 2, 5, dtype=q.dtype)
        out = flash_attn_func(q, k, v, causal=True)
        filled = fa.attention(*(torch.cat((t, zeros), -1) for t in (q, k, v)), causal=True, scale=59**-0.5)
        self.assertTrue(torch.equal(out, filled[..., :59]))
        for got, expected in zip(*(torch.autograd.grad(o[..., :59].sum(), (q, k, v)) for o in (out, filled))):
            self.assertEqual(got.shape[-1], 59)
            self.assertTrue(torch.equal(got, expected))

    def test_options_that_no_kernel_has(self):
        q, k, v = inputs()
        for sentence, option in {
            "dropout_p is 0.1; no kernel of flashback_attention has this option; accepted: 0.0": dict(dropout_p=0.1),
            "softcap is 10; no kernel of flashback_attention has this option; accepted: 0.0": dict(softcap=10),
            "alibi_slopes is a tensor; no kernel of flashback_attention has this option; accepted: None":
                dict(alibi_slopes=normal(2)),
        }.items():
            with self.assertRaises(fa.Unsupported) as raised:
                flash_attn_func(q, k, v, **option)
            self.assertEqual(str(raised.exception), sentence)


class Refusals(unittest.TestCase):
    def refused(self, error, sentence, *arguments, **choices):
        with self.assertRaises(error) as raised:
            fa.attention(*arguments, **choices)
        self.assertEqual(str(raised.exception), sentence)

    def test_sentences(self):
        q, k, v = inputs()
        self.refused(fa.InvalidArgument, "q is a list; accepted: a NumPy array or a tensor of torch", [1], k, v)
        self.refused(fa.InvalidArgument, "k is a NoneType; accepted: a tensor of torch, as q", q, None, v)
        self.refused(fa.InvalidArgument, "q is float32; accepted: bfloat16, float16", q.float(), k, v)
        self.refused(fa.InvalidArgument, "v has the shape (1, 39, 2, 64); accepted: (1, 40, 2, 64), as k", q, k, v[:, 1:])
        self.refused(fa.InvalidArgument, "k is on meta; accepted: cpu, as q", q, k.to("meta"), v)

    def test_backward_s_refusal_comes_first(self):
        q, k, v = inputs(dim=136)
        with self.assertRaisesRegex(fa.Unsupported, "^head_dim is 136; no backward kernel "):
            fa.attention(q, k, v)


if __name__ == "__main__":
    unittest.main()
