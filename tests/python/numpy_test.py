"""Attention and its gradients over NumPy arrays against double precision, on the emulator of both architectures."""

import importlib.util
import unittest

import ml_dtypes
import numpy as np

import flashback_attention as fa
import reference

BF16, F16 = ml_dtypes.bfloat16, np.float16


def normal(*shape, dtype=BF16, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def sequences(cu, used, rows):
    """Slices of the rows that take part."""
    return [slice(a, min(b, a + u)) for a, b, u in
            zip(cu[:-1], cu[1:], [rows] * (len(cu) - 1) if used is None else used)]


class Case:
    """One question, the reference's answers to it, and what is wrong with given ones."""

    def __init__(self, rows, keys, heads=2, kv_heads=2, dim=64, batch=1, dtype=BF16, cu=None, used=None, sink=False,
                 dlse=False, **choices):
        self.packed, self.choices, self.dtype = cu is not None, choices, dtype
        lead = () if self.packed else (batch,)
        self.q = normal(*lead, rows, heads, dim, dtype=dtype, seed=1)
        self.k, self.v = (normal(*lead, keys, kv_heads, dim, dtype=dtype, seed=s) for s in (2, 3))
        self.dout = normal(*lead, rows, heads, dim, dtype=dtype, seed=4)
        self.sink = normal(heads, dtype=np.float32, seed=5) if sink else None
        self.dlse = normal(*lead, heads, rows, dtype=np.float32, seed=6) if dlse else None
        self.cu, self.used = cu or (None, None), used or (None, None)
        self.exact, self.rounded = self._answers(None), self._answers(dtype)

    def _parts(self):
        if self.packed:
            rows, keys = (sequences(cu, used, 1 << 30) for cu, used in zip(self.cu, self.used))
            return list(zip(rows, keys))
        return [((b, slice(0, self.q.shape[1])), (b, slice(0, self.k.shape[1]))) for b in range(len(self.q))]

    def _answers(self, kept):
        heads_first = (self.q.shape[-2], self.q.shape[0]) if self.packed else (len(self.q), self.q.shape[2],
                                                                             self.q.shape[1])
        answer = {"out": np.zeros(self.q.shape), "lse": np.full(heads_first, -np.inf), "dq": np.zeros(self.q.shape),
                  "dk": np.zeros(self.k.shape), "dv": np.zeros(self.v.shape)}
        if self.sink is not None:
            answer["dsink"] = np.zeros(self.sink.shape)
        for at_q, at_k in self._parts():
            at_lse = (slice(None), at_q) if self.packed else (at_q[0], slice(None), at_q[1])
            part = reference.attention(self.q[at_q], self.k[at_k], self.v[at_k], self.dout[at_q],
                                       None if self.dlse is None else self.dlse[at_lse], self.sink, kept=kept,
                                       **self.choices)
            for name in "out", "dq":
                answer[name][at_q] = part[name]
            for name in "dk", "dv":
                answer[name][at_k] = part[name]
            answer["lse"][at_lse] = part["lse"]
            if self.sink is not None:
                answer["dsink"] += part["dsink"]
        return answer

    def _sequences(self):
        numbers = dict(zip(("cu_seqlens_q", "cu_seqlens_k", "seqused_q", "seqused_k"), self.cu + self.used))
        return {name: np.array(given, np.int32) for name, given in numbers.items() if given is not None}

    def forward(self, **more):
        function = fa.attention_varlen if self.packed else fa.attention
        return function(self.q, self.k, self.v, sink=self.sink, **self._sequences(), **self.choices, **more)

    def backward(self, **more):
        return fa.attention_backward(
            self.dout, self.q, self.k, self.v, self.exact["out"].astype(self.dtype),
            self.exact["lse"].astype(np.float32), sink=self.sink, dlse=self.dlse, **self._sequences(), **self.choices,
            **more)

    def wrong(self, names, got):
        found = [reference.wrong(n, g, self.exact[n], self.rounded[n], self.dtype) for n, g in zip(names, got)]
        return [sentence for sentence in found if sentence]


GRADIENTS = "dq", "dk", "dv", "dsink"
CASES = {
    "dense": dict(rows=70, keys=130, batch=2),
    "causal, fewer keys than rows": dict(rows=130, keys=70, causal=True),
    "window": dict(rows=130, keys=130, window=(20, 5)),
    "window, as an array": dict(rows=130, keys=130, window=np.array([20, 5])),
    "grouped queries, fp16": dict(rows=65, keys=65, heads=6, kv_heads=2, causal=True, dtype=F16),
    "head dimension 40 with a scale": dict(rows=33, keys=33, dim=40, scale=0.3),
    "sink and gradient through lse": dict(rows=70, keys=70, sink=True, dlse=True, causal=True),
    "packed, with an empty sequence and unused rows": dict(
        rows=150, keys=120, cu=([0, 40, 40, 130], [0, 50, 60, 110]), used=([30, 0, 90], [50, 10, 33]), causal=True),
    "no rows": dict(rows=0, keys=20),
}


class Forward(unittest.TestCase):
    def test_against_double_precision(self):
        for name, chosen in CASES.items():
            case = Case(**chosen)
            for arch in "sm100", "sm90":
                fa.emulate(arch)
                with self.subTest(arch=arch, case=name):
                    out, lse = case.forward(return_lse=True)
                    self.assertEqual(out.dtype, np.dtype(case.dtype))
                    self.assertEqual(case.wrong(("out", "lse"), (out, lse)), [])
                    self.assertEqual(case.forward().tobytes(), out.tobytes())


class Backward(unittest.TestCase):
    def test_against_double_precision(self):
        cases = {name: Case(**case) for name, case in CASES.items()}
        for arch in "sm100", "sm90":
            fa.emulate(arch)
            for name, case in cases.items():
                with self.subTest(arch=arch, case=name):
                    got = case.backward()
                    self.assertEqual(len(got), 3 + (case.sink is not None))
                    self.assertEqual([g.dtype for g in got[:3]], [np.dtype(case.dtype)] * 3)
                    self.assertEqual(case.wrong(GRADIENTS, got), [])

    def test_any_strides(self):
        fa.emulate("sm90")
        case = Case(rows=40, keys=40)
        plain = case.backward()
        case.q, case.k = case.q.transpose(0, 2, 1, 3).copy().transpose(0, 2, 1, 3), np.asfortranarray(case.k)
        case.dout = np.flip(np.flip(case.dout, 1).copy(), 1)
        for strided, dense in zip(case.backward(), plain):
            self.assertEqual(strided.tobytes(), dense.tobytes())

    def test_deterministic_has_the_same_bits(self):
        fa.emulate("sm100")
        case = Case(rows=130, keys=300)
        first, second = case.backward(deterministic=True), case.backward(deterministic=True)
        self.assertEqual([g.tobytes() for g in first], [g.tobytes() for g in second])
        self.assertEqual(case.wrong(GRADIENTS, first), [])


class Refusals(unittest.TestCase):
    def refused(self, error, sentence, **changes):
        case = Case(rows=8, keys=8)
        arguments = dict(dout=case.dout, q=case.q, k=case.k, v=case.v, out=case.exact["out"].astype(BF16),
                         lse=case.exact["lse"].astype(np.float32))
        with self.assertRaises(error) as raised:
            fa.attention_backward(**{**arguments, **changes})
        self.assertEqual(str(raised.exception), sentence)

    def test_tensors_that_do_not_belong_together(self):
        offsets = np.array([0, 8], np.int32)
        packed = {name: normal(8, 2, 64) for name in ("q", "k", "v", "out", "dout")}
        for sentence, changes in {
            "q is float32; accepted: bfloat16, float16": dict(q=normal(1, 8, 2, 64, dtype=np.float32)),
            "k is float16; accepted: bfloat16, as q": dict(k=normal(1, 8, 2, 64, dtype=F16)),
            "q has 3 dimensions; accepted: 4, (batch, rows, heads, head_dim)": dict(q=normal(8, 2, 64)),
            "k has 2 sequences (dimension 0); accepted: 1, as q": dict(k=normal(2, 8, 2, 64)),
            "k has the head dimension 32; accepted: 64, as q": dict(k=normal(1, 8, 2, 32)),
            "v has the shape (1, 9, 2, 64); accepted: (1, 8, 2, 64), as k": dict(v=normal(1, 9, 2, 64)),
            "lse has the shape (1, 8, 2); accepted: (1, 2, 8), (batch, heads, rows) of q":
                dict(lse=normal(1, 8, 2, dtype=np.float32)),
            "sink has the shape (3,); accepted: (2,), a logit of each query head":
                dict(sink=normal(3, dtype=np.float32)),
            "k is a list; accepted: a NumPy array, as q": dict(k=[1]),
            "q is a list; accepted: a NumPy array (tensors of torch have autograd)": dict(q=[1]),
            "one of cu_seqlens_q and cu_seqlens_k is given; accepted: both, or neither": dict(cu_seqlens_q=offsets),
            "cu_seqlens_q is int64; accepted: int32, which the kernels read":
                dict(packed, lse=normal(2, 8, dtype=np.float32), cu_seqlens_q=offsets.astype(np.int64),
                     cu_seqlens_k=offsets),
            "scale is 0; accepted: None, which means 1 / sqrt(head_dim), or a number other than 0": dict(scale=0),
            "window is (3,); accepted: (left, right), where -1 is no bound": dict(window=(3,)),
            "window is 3; accepted: (left, right), where -1 is no bound": dict(window=3),
        }.items():
            with self.subTest(sentence):
                self.refused(fa.InvalidArgument, sentence, **changes)

    @unittest.skipIf(importlib.util.find_spec("torch"), "torch is installed")
    def test_a_tensor_without_torch(self):
        with self.assertRaisesRegex(fa.InvalidArgument, "^q is no NumPy array, and torch is not installed; accepted: "):
            fa.attention([1], [1], [1])

    def test_the_library_speaks(self):
        case = Case(rows=8, keys=8, heads=3, kv_heads=3)
        with self.assertRaisesRegex(fa.InvalidArgument, "^kv_heads is 2; it must divide heads"):
            case.k = case.v = normal(1, 8, 2, 64)
            case.backward()
        with self.assertRaisesRegex(fa.InvalidArgument, '^arch is "sm80"; accepted: "sm100", "sm90"$'):
            fa.emulate("sm80")
        with self.assertRaisesRegex(fa.Unsupported, "^head_dim is 136; "):
            Case(rows=8, keys=8, dim=136).backward()


if __name__ == "__main__":
    unittest.main()
