#!/usr/bin/env python3
"""Ours beside FlashAttention-2 and cuDNN through torch, under the protocols of `flashback bench --suite backward` and
in its JSON.

  peers.py [forward|backward] [--peer fa3.so] [--cells causal,gqa,1k] [--protocol short|sustained|both] > peers.json

Needs torch with CUDA and the package flashback_attention. What is timed is the forward pass, or the backward pass as
autograd calls it, by events around it; inputs are N(0, 1), out and lse of a backward pass the function's own. cuDNN
takes part where scaled_dot_product_attention offers it: dense and causal, padded, default order. A --peer is a shared
library with a function of bench/peer.h."""

import argparse
import ctypes
import datetime
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import time

# rounds, rest, warm-up (calls, ms), timed (calls, ms), turns: bench/protocol.h says what they mean.
PROTOCOLS = [
    {"name": "short", "rounds": 2, "idle_ms": 100, "warm_calls": 3, "warm_ms": 0, "timed_calls": 15, "timed_ms": 0,
     "turns": True},
    {"name": "sustained", "rounds": 2, "idle_ms": 0, "warm_calls": 3, "warm_ms": 200, "timed_calls": 12,
     "timed_ms": 300, "turns": False},
]
TOKENS, QUERY_CHANNELS, GROUP, WINDOW = 65536, 2048, 4, 1024
MOST_TENSOR_DISTANCE = 5e-3  # as in bench/pass_suite.h
# Words of which a cell has one, and those that count where none is given: bench/cell.cpp.
LENGTHS = {"128": 128, "256": 256, "512": 512, **{f"{2 ** i}k": 1024 * 2 ** i for i in range(6)}}
KINDS = {"head dimension": (["d64", "d128"], ["d64"]), "layout": (["padded", "packed"], ["padded"]),
         "dtype": (["bf16", "fp16"], ["bf16"]), "order": (["default", "deterministic"], ["default"]),
         "heads": (["mha", "gqa", "mqa"], ["mha", "gqa"]), "mask": (["dense", "causal", "window"], ["dense", "causal"]),
         "length": (list(LENGTHS), [word for word in LENGTHS if word.endswith("k")])}


def seen_scores(mask, rows):
    """Of one head: what everyone counts under a causal mask, and what a window lets through."""
    if mask == "window":
        return sum(min(row, WINDOW) + 1 for row in range(rows))
    return rows * rows / (2 if mask == "causal" else 1)


def cell_of(head_dim, layout, dtype, order, heads, mask, length):
    channels, rows = int(head_dim[1:]), LENGTHS[length]
    query_heads, batch = QUERY_CHANNELS // channels, TOKENS // rows
    extras = [word for word in (head_dim, dtype, layout, order) if word not in ("d64", "bf16", "padded", "default")]
    return {"name": " ".join([mask, heads, str(rows), *extras]), "mask": mask, "dtype": dtype,
            "deterministic": order == "deterministic", "packed": layout == "packed", "batch": batch,
            "heads": query_heads, "kv_heads": {"mha": query_heads, "gqa": query_heads // GROUP, "mqa": 1}[heads],
            "seqlen": rows, "head_dim": channels,
            "gflop": 10e-9 * batch * query_heads * seen_scores(mask, rows) * channels}


def chosen(words):
    given = {kind: [] for kind in KINDS}
    spelled = {str(rows): word for word, rows in LENGTHS.items()}
    for part in words.split(",") if words else []:
        word = spelled.get(part, part)
        kind = next((kind for kind, (of_kind, _) in KINDS.items() if word in of_kind), None)
        if kind is None:
            sys.exit(f"--cells has the word {part}; each must be one of "
                     + ", ".join(word for of_kind, _ in KINDS.values() for word in of_kind))
        given[kind].append(word)
    open_words = [[word for word in of_kind if word in (given[kind] or usual)]
                  for kind, (of_kind, usual) in KINDS.items()]
    return [cell_of(*choice) for choice in itertools.product(*open_words)]


def take_times(protocol, contenders, once, wait, now=time.perf_counter, sleep=time.sleep):
    """Milliseconds of each round's timed calls, for each of `contenders`, functions that enqueue a call. `once` times
    one; `wait` returns when the GPU is idle."""
    rounds = [[[] for _ in range(protocol["rounds"])] for _ in contenders]
    for number in range(protocol["rounds"]):
        order = [(i + number) % len(contenders) for i in range(len(contenders))]
        for group in [order] if protocol["turns"] else [[i] for i in order]:
            wait()
            sleep(protocol["idle_ms"] / 1000)
            start, call = now(), 0
            while call < protocol["warm_calls"] or (now() - start) * 1000 < protocol["warm_ms"]:
                for i in group:
                    contenders[i]()
                wait()
                call += 1
            start, call = now(), 0
            while call < protocol["timed_calls"] or (now() - start) * 1000 < protocol["timed_ms"]:
                for turn in range(len(group)):
                    i = group[(turn + call) % len(group)]
                    rounds[i][number].append(once(contenders[i]))
                call += 1
    return rounds


class PeerTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p)] + [(name, ctypes.c_int64) for name in
                                              ("batch_stride", "row_stride", "head_stride")]

    @classmethod
    def of(cls, tensor):
        *batch, row, head, _ = tensor.stride()
        return cls(tensor.data_ptr(), batch[0] if batch else 0, row, head)


class PeerArguments(ctypes.Structure):
    """flashback_peer_arguments of bench/peer.h."""
    _fields_ = ([(name, ctypes.c_int64) for name in ("batch", "heads", "kv_heads", "seqlen_q", "seqlen_k", "head_dim")]
                + [("fp16", ctypes.c_int), ("window_left", ctypes.c_int64), ("window_right", ctypes.c_int64),
                   ("deterministic", ctypes.c_int), ("cu_seqlens", ctypes.c_void_p), ("scale", ctypes.c_float)]
                + [(name, PeerTensor) for name in ("q", "k", "v", "out", "dout")] + [("lse", ctypes.c_void_p)]
                + [(name, PeerTensor) for name in ("dq", "dk", "dv")]
                + [("device", ctypes.c_int), ("stream", ctypes.c_void_p)])


class Torch:
    def __init__(self, peers=()):
        import flashback_attention
        import torch
        self.torch = torch
        self.flashback = flashback_attention
        self.flush = torch.empty(512 << 20, dtype=torch.uint8, device="cuda")
        self.flushes = 1
        self.peers = {os.path.splitext(os.path.basename(file))[0]: ctypes.CDLL(os.path.abspath(file)) for file in peers}
        self.events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]

    def contenders(self, cell):
        """{name: (a function that enqueues the forward pass and returns out,
                   one that enqueues the backward pass and returns dq, dk and dv)}"""
        names = ["flashback", "flash_attention_2"]
        if cell["mask"] != "window" and not cell["packed"] and not cell["deterministic"]:
            names.append("cudnn")
        torch = self.torch
        dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[cell["dtype"]]
        rows = (TOKENS,) if cell["packed"] else (cell["batch"], cell["seqlen"])
        def normal(heads):
            return torch.randn(*rows, heads, cell["head_dim"], device="cuda", dtype=dtype)
        q, k, v = (normal(cell[heads]) for heads in ("heads", "kv_heads", "kv_heads"))
        dout = normal(cell["heads"])
        of = {"flashback": self.ours, "flash_attention_2": self.flash_attention_2, "cudnn": self.cudnn}
        passes = {name: of[name](cell, q, k, v, dout) for name in names}
        for name, library in self.peers.items():
            passes[name] = self.peer(library, cell, q, k, v, dout)
        return passes

    def boundaries(self, cell):
        return self.torch.arange(0, TOKENS + 1, cell["seqlen"], dtype=self.torch.int32, device="cuda")

    def attention(self, cell):
        """Ours, of q, k and v."""
        choices = {"causal": cell["mask"] == "causal", "deterministic": cell["deterministic"],
                   "window": (WINDOW, 0) if cell["mask"] == "window" else (-1, -1)}
        sequences = [self.boundaries(cell)] * 2 if cell["packed"] else []
        function = self.flashback.attention_varlen if cell["packed"] else self.flashback.attention
        return lambda *inputs, **more: function(*inputs, *sequences, **choices, **more)

    def ours(self, cell, q, k, v, dout):
        return self.passes(self.attention(cell), (q, k, v), dout)

    def passes(self, function, tensors, dout):
        inputs = [tensor.detach().requires_grad_() for tensor in tensors]
        out = function(*inputs)
        # dout in the strides of out, so that torch copies nothing.
        gradient = self.torch.empty_like(out).copy_(dout)
        return (lambda: (function(*tensors),),
                lambda: self.torch.autograd.grad(out, inputs, gradient, retain_graph=True))

    def flash_attention_2(self, cell, q, k, v, dout):
        """By torch's own operators, which offer windows and packed sequences as well."""
        ops, causal = self.torch.ops.aten, cell["mask"] == "causal"
        boundaries = self.boundaries(cell) if cell["packed"] else None
        window = {"window_size_left": WINDOW, "window_size_right": 0} if cell["mask"] == "window" else {}
        sequences = (boundaries, boundaries, cell["seqlen"], cell["seqlen"])
        def forward():
            return ops._flash_attention_forward(q, k, v, *sequences, 0.0, causal, False, **window)
        out, lse, seed, unused, _ = forward()
        def backward():
            self.torch.use_deterministic_algorithms(cell["deterministic"])
            gradients = ops._flash_attention_backward(dout, q, k, v, out, lse, *sequences, 0.0, causal, seed, unused,
                                                      **window)
            self.torch.use_deterministic_algorithms(False)
            return gradients
        return lambda: forward()[:1], backward

    def cudnn(self, cell, q, k, v, dout):
        torch = self.torch
        def function(*inputs):
            with torch.nn.attention.sdpa_kernel([torch.nn.attention.SDPBackend.CUDNN_ATTENTION]):
                return torch.nn.functional.scaled_dot_product_attention(
                    *(tensor.transpose(1, 2) for tensor in inputs), is_causal=cell["mask"] == "causal",
                    enable_gqa=cell["kv_heads"] != cell["heads"]).transpose(1, 2)
        return self.passes(function, (q, k, v), dout)

    def peer(self, library, cell, q, k, v, dout):
        """Of a library after bench/peer.h; it begins with our out and lse."""
        torch, window = self.torch, {"dense": (-1, -1), "causal": (-1, 0), "window": (WINDOW, 0)}[cell["mask"]]
        boundaries = self.boundaries(cell) if cell["packed"] else None
        out, lse = self.attention(cell)(q, k, v, return_lse=True)
        gradients = [torch.empty_like(tensor) for tensor in (q, k, v)]
        arguments = PeerArguments(
            *(cell[key] for key in ("batch", "heads", "kv_heads", "seqlen", "seqlen", "head_dim")),
            cell["dtype"] == "fp16", *window, cell["deterministic"],
            boundaries.data_ptr() if cell["packed"] else None, cell["head_dim"] ** -0.5,
            *(PeerTensor.of(tensor) for tensor in (q, k, v, out, dout)), lse.data_ptr(),
            *(PeerTensor.of(tensor) for tensor in gradients), torch.cuda.current_device(),
            torch.cuda.current_stream().cuda_stream)
        arguments.memory = (boundaries, lse, q, k, v, out, dout, gradients)  # lives as long as its addresses
        def enqueue(which, written):
            function = getattr(library, f"flashback_peer_{which}")
            function.restype = ctypes.c_char_p
            sentence = function(ctypes.byref(arguments))
            if sentence:
                sys.exit(f"peer: {sentence.decode()}")
            return written
        return lambda: enqueue("forward", (out,)), lambda: enqueue("backward", gradients)

    def cover(self, contenders):
        """Writes as often between timed calls as keeps the GPU busy while the host enqueues the slowest of them."""
        torch = self.torch
        def host_seconds(enqueue):
            torch.cuda.synchronize()
            self.flush.fill_(1)
            start = time.perf_counter()
            enqueue()
            return time.perf_counter() - start
        self.flushes = 1
        write = self.once(lambda: self.flush.fill_(1)) / 1000
        slowest = max(statistics.median(host_seconds(enqueue) for _ in range(5)) for enqueue in contenders)
        self.flushes = 1 + math.ceil(1.5 * slowest / write)

    def once(self, enqueue):
        for _ in range(self.flushes):
            self.flush.fill_(1)
        self.events[0].record()
        enqueue()
        self.events[1].record()
        self.events[1].synchronize()
        return self.events[0].elapsed_time(self.events[1])

    def distance(self, a, b):
        a, b = a.float(), b.float()
        return ((a - b).norm() / b.norm()).item()


def measure(gpu, cell, protocols, direction):
    enqueues = {name: passes[direction == "backward"] for name, passes in gpu.contenders(cell).items()}
    outputs = {"forward": ("out",), "backward": ("dq", "dk", "dv")}[direction]
    contenders, written, results = list(enqueues.values()), [], []
    for name, enqueue in enqueues.items():
        written.append(enqueue())
        far = {tensor: {"rel": gpu.distance(a, b)}
               for tensor, a, b in zip(outputs, written[-1], written[0])}
        ok = all(of["rel"] <= MOST_TENSOR_DISTANCE for of in far.values())
        results.append({"name": name, "check": {"against_first_contender": far, "ok": ok}})
    del written
    if all(result["check"]["ok"] for result in results):
        gpu.cover(contenders)
        for protocol in protocols:
            for result, rounds in zip(results, take_times(protocol, contenders, gpu.once, gpu.torch.cuda.synchronize)):
                times = [ms for of_round in rounds for ms in of_round]
                median = statistics.median(times)
                result.setdefault("timings", []).append(
                    {"protocol": protocol["name"], "ms": median,
                     "ms_of_rounds": [statistics.median(of_round) for of_round in rounds], "ms_least": min(times),
                     "ms_most": max(times), "calls": len(times), "tflops": cell["gflop"] / median})
    return {**cell, "contenders": results}


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("direction", nargs="?", default="backward", choices=["forward", "backward"])
    parser.add_argument("--peer", action="append", default=[], metavar="FILE", help="a library after bench/peer.h")
    parser.add_argument("--cells", default="", help="words as for `flashback bench` [the 24]")
    parser.add_argument("--protocol", default="both", choices=["short", "sustained", "both"])
    arguments = parser.parse_args()
    cells = chosen(arguments.cells)
    if arguments.direction == "forward":  # two products instead of five
        cells = [{**cell, "gflop": 0.4 * cell["gflop"]} for cell in cells]
    protocols = [p for p in PROTOCOLS if arguments.protocol in (p["name"], "both")]
    gpu = Torch(arguments.peer)
    report = {"suite": arguments.direction, "card": gpu.torch.cuda.get_device_name(),
              "driver": output_of("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"),
              "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
              "commit": f"flashback and torch {gpu.torch.__version__}, cuDNN {gpu.torch.backends.cudnn.version()}",
              "command": " ".join(["peers.py", *sys.argv[1:]]), "protocols": protocols,
              "cells": [measure(gpu, cell, protocols, arguments.direction) for cell in cells]}
    report["ok"] = all(c["check"]["ok"] for cell in report["cells"] for c in cell["contenders"])
    json.dump(report, sys.stdout, indent=1)
    print()
    return 0 if report["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
