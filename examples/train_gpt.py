#!/usr/bin/env python3
"""Trains a small GPT on bytes of text, once for each of RUN, and keeps the loss of every step.

    train_gpt.py --out gpt.json flashback:0 sdpa:0 sdpa:1
    train_gpt.py --out gpt.json --packed flashback:0 sdpa:0          documents of many lengths, packed
    train_gpt.py --out gpt.json --deterministic flashback:0 flashback:0

A RUN is the attention and the seed of weights and data: flashback, or sdpa, which is torch's
scaled_dot_product_attention. train_gpt_plot.py draws what is kept. Needs torch and flashback_attention; without --text it reads
the sources of Python's own library."""

import argparse
import hashlib
import json
import os
import pathlib
import sysconfig
import time

import torch
from torch import nn
from torch.nn import functional as F

import flashback_attention as fa

HEAD_DIM = 64


def text_of(path):
    if path:
        data = pathlib.Path(path).read_bytes()
    else:
        sources = sorted(pathlib.Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
        data = b"".join(source.read_bytes() for source in sources)
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


class Batches:
    """Rows of `length` bytes from anywhere in the text, and where their documents begin."""

    def __init__(self, text, options, seed):
        self.text, self.shape, self.device = text, (options.batch, options.length), options.device
        self.document = options.document if options.packed else None
        self.random = torch.Generator().manual_seed(seed)

    def documents(self):
        """cu_seqlens of the rows one after another. Not packed: a row is a document."""
        batch, length = self.shape
        starts = list(range(0, batch * length + 1, length))
        if self.document:
            cuts = batch * length // self.document
            starts += torch.randint(1, batch * length, (cuts,), generator=self.random).tolist()
        return torch.tensor(sorted(set(starts)), dtype=torch.int32)

    def next(self):
        batch, length = self.shape
        at = torch.randint(len(self.text) - length - 1, (batch, 1), generator=self.random)
        tokens = self.text[at + torch.arange(length + 1)].long()
        cu = self.documents()
        document = torch.bucketize(torch.arange(batch * length), cu[1:].long(), right=True)
        position = torch.arange(batch * length) - cu[document]
        return [t.to(self.device) for t in (tokens[:, :-1], tokens[:, 1:], cu, document.view(batch, length),
                                            position.view(batch, length))]


def flashback(q, k, v, cu, document, packed, deterministic):
    if not packed:
        return fa.attention(q, k, v, causal=True, deterministic=deterministic)
    flat = (t.flatten(0, 1) for t in (q, k, v))
    return fa.attention_varlen(*flat, cu, cu, causal=True, deterministic=deterministic).view_as(q)


def sdpa(q, k, v, cu, document, packed, deterministic):
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    if not packed:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
    visible = (document[:, :, None] == document[:, None, :]).tril()[:, None]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=visible).transpose(1, 2)


ATTENTION = {"flashback": flashback, "sdpa": sdpa}


class Block(nn.Module):
    def __init__(self, width, attend):
        super().__init__()
        self.attend = attend
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.merge = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, *documents):
        q, k, v = self.qkv(self.before_attention(x)).unflatten(-1, (3, -1, HEAD_DIM)).unbind(2)
        x = x + self.merge(self.attend(q, k, v, *documents).flatten(2))
        return x + self.mlp(self.before_mlp(x))


class GPT(nn.Module):
    def __init__(self, layers, width, length, attend):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(256, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, attend) for _ in range(layers))
        self.last, self.head = nn.LayerNorm(width), nn.Linear(width, 256, bias=False)

    def forward(self, tokens, position, *documents):
        x = self.tokens(tokens) + self.positions(position)
        for block in self.blocks:
            x = block(x, *documents)
        return self.head(self.last(x))


def train(attention, seed, options):
    """Losses of every step, tokens a second after the first tenth of them, and a digest of the trained weights."""
    device = torch.device(options.device)
    torch.manual_seed(seed)
    model = GPT(options.layers, options.width, options.length, ATTENTION[attention]).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate, betas=(0.9, 0.95))
    batches = Batches(text_of(options.text), options, seed)
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    losses, warm = [], options.steps // 10
    for step in range(options.steps):
        if step == warm:
            wait()
            start = time.perf_counter()
        tokens, following, cu, document, position = batches.next()
        for group in optimizer.param_groups:  # rises over the first tenth
            group["lr"] = options.rate * min(1, (step + 1) / (warm + 1))
        with torch.autocast(device.type, torch.bfloat16):
            scores = model(tokens, position, cu, document, options.packed, options.deterministic)
        loss = F.cross_entropy(scores.float().flatten(0, 1), following.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    wait()
    seconds = time.perf_counter() - start
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().cpu().numpy().tobytes())
    return {"attention": attention, "seed": seed, "losses": torch.stack(losses).tolist(), "weights": digest.hexdigest(),
            "tokens_per_second": round((options.steps - warm) * options.batch * options.length / seconds)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="RUN")
    parser.add_argument("--out", required=True, metavar="FILE")
    parser.add_argument("--text", metavar="FILE")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--packed", action="store_true")
    parser.add_argument("--document", type=int, default=300, help="mean bytes of a packed document")
    parser.add_argument("--deterministic", action="store_true")
    for name, default in ("steps", 300), ("batch", 8), ("length", 2048), ("layers", 8), ("width", 768):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--rate", type=float, default=6e-4)
    options = parser.parse_args()
    if options.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it cuBLAS refuses
        torch.use_deterministic_algorithms(True)
    runs = []
    for run in options.runs:
        attention, seed = run.split(":")
        runs.append(train(attention, int(seed), options))
        print(f"{run}: loss {runs[-1]['losses'][-1]:.4f}, {runs[-1]['tokens_per_second']} tokens/s, weights "
              f"{runs[-1]['weights'][:12]}", flush=True)
    card = torch.cuda.get_device_name() if options.device == "cuda" else "the emulator"
    kept = {"card": card, "torch": torch.__version__, "date": time.strftime("%Y-%m-%d"), "options": vars(options),
            "runs": runs}
    pathlib.Path(options.out).write_text(json.dumps(kept) + "\n")


if __name__ == "__main__":
    main()
