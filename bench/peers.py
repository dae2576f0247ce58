#!/usr/bin/env python3
"""FlashAttention-2 and cuDNN through torch, under the protocols of `flashback bench --suite backward` and in its JSON.

  peers.py [--cells causal,gqa,1k] [--protocol short|sustained|both] > peers.json

Needs torch with CUDA. What is timed is the backward pass of scaled_dot_product_attention with the one backend, by
events around it; inputs are N(0, 1), out and lse the backend's own."""

import argparse
import datetime
import json
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
TOKENS, HEADS, HEAD_DIM = 65536, 32, 64
MOST_TENSOR_DISTANCE = 5e-3  # as in bench/backward.h


def all_cells():
    return [{"name": f"{mask} {kind} {rows}", "mask": mask, "dtype": "bf16", "batch": TOKENS // rows, "heads": HEADS,
             "kv_heads": kv_heads, "seqlen": rows, "head_dim": HEAD_DIM,
             "gflop": 10e-9 * TOKENS * HEADS * rows * HEAD_DIM * (0.5 if mask == "causal" else 1)}
            for kind, kv_heads in (("mha", HEADS), ("gqa", 8))
            for mask in ("dense", "causal")
            for rows in (1024, 2048, 4096, 8192, 16384, 32768)]


def chosen(words):
    kinds = ({"dense", "causal"}, {"mha", "gqa"}, {f"{2 ** i}k" for i in range(6)})
    words = set(words.split(",")) if words else set()
    unknown = words - set.union(*kinds)
    if unknown:
        sys.exit(f"--cells has the word {min(unknown)}; each must be one of {', '.join(sorted(set.union(*kinds)))}")
    def matches(cell):
        mask, kind, rows = cell["name"].split()
        said = {mask, kind, f"{int(rows) // 1024}k"}
        return all(not words & of_kind or words & of_kind & said for of_kind in kinds)
    return [cell for cell in all_cells() if matches(cell)]


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


class Torch:
    def __init__(self):
        import torch
        from torch.nn.attention import SDPBackend
        self.torch = torch
        self.backends = {"flash_attention_2": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}
        self.flush = torch.empty(512 << 20, dtype=torch.uint8, device="cuda")
        self.events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]

    def inputs(self, cell):
        def normal(heads):
            rows = self.torch.randn(cell["batch"], cell["seqlen"], heads, HEAD_DIM, device="cuda",
                                    dtype=self.torch.bfloat16)
            return rows.transpose(1, 2)  # (batch, head, row, channel) in memory (batch, row, head, channel)
        return normal(HEADS), normal(cell["kv_heads"]), normal(cell["kv_heads"]), normal(HEADS)

    def backward(self, backend, cell, q, k, v, dout):
        """A function that enqueues the backward pass and returns (dq, dk, dv)."""
        torch = self.torch
        inputs = [tensor.detach().requires_grad_() for tensor in (q, k, v)]
        with torch.nn.attention.sdpa_kernel([self.backends[backend]]):
            out = torch.nn.functional.scaled_dot_product_attention(
                *inputs, is_causal=cell["mask"] == "causal", enable_gqa=cell["kv_heads"] != HEADS)
        # dout in the strides of out, so that torch copies nothing.
        gradient = torch.empty_like(out).copy_(dout)
        return lambda: torch.autograd.grad(out, inputs, gradient, retain_graph=True)

    def once(self, enqueue):
        self.flush.fill_(1)
        self.events[0].record()
        enqueue()
        self.events[1].record()
        self.events[1].synchronize()
        return self.events[0].elapsed_time(self.events[1])

    def distance(self, a, b):
        a, b = a.float(), b.float()
        return ((a - b).norm() / b.norm()).item()


def measure(gpu, cell, protocols):
    q, k, v, dout = gpu.inputs(cell)
    names, contenders, gradients, results = [], [], [], []
    for name in gpu.backends:
        enqueue = gpu.backward(name, cell, q, k, v, dout)
        names.append(name)
        contenders.append(enqueue)
        gradients.append(enqueue())
        far = {tensor: {"rel": gpu.distance(a, b)}
               for tensor, a, b in zip(("dq", "dk", "dv"), gradients[-1], gradients[0])}
        ok = all(of["rel"] <= MOST_TENSOR_DISTANCE for of in far.values())
        results.append({"name": name, "check": {"against_first_contender": far, "ok": ok}})
    del gradients
    if all(result["check"]["ok"] for result in results):
        for protocol in protocols:
            for result, rounds in zip(results, take_times(protocol, contenders, gpu.once, gpu.torch.cuda.synchronize)):
                times = [ms for of_round in rounds for ms in of_round]
                median = statistics.median(times)
                result.setdefault("timings", []).append(
                    {"protocol": protocol["name"], "ms": median,
                     "ms_of_rounds": [statistics.median(of_round) for of_round in rounds], "ms_least": min(times),
                     "ms_most": max(times), "calls": len(times), "tflops": cell["gflop"] / median / 1000})
    return {**cell, "contenders": results}


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", default="", help="of dense, causal, mha, gqa and lengths 1k to 32k [all]")
    parser.add_argument("--protocol", default="both", choices=["short", "sustained", "both"])
    arguments = parser.parse_args()
    cells = chosen(arguments.cells)
    protocols = [p for p in PROTOCOLS if arguments.protocol in (p["name"], "both")]
    gpu = Torch()
    report = {"suite": "backward", "card": gpu.torch.cuda.get_device_name(),
              "driver": output_of("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"),
              "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
              "commit": f"torch {gpu.torch.__version__}, cuDNN {gpu.torch.backends.cudnn.version()}",
              "command": " ".join(["peers.py", *sys.argv[1:]]), "protocols": protocols,
              "cells": [measure(gpu, cell, protocols) for cell in cells]}
    report["ok"] = all(c["check"]["ok"] for cell in report["cells"] for c in cell["contenders"])
    json.dump(report, sys.stdout, indent=1)
    print()
    return 0 if report["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
