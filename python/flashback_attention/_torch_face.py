"""Attention over tensors of torch: the operators flashback_attention::forward and ::backward, and what torch asks of an
operator: shapes without data (fake kernels), gradients, and none of the second order.

On a GPU a pass is enqueued on torch's current stream, in memory of torch's allocator. Tensors on the CPU run on the
emulator."""

from ctypes import byref

import torch

from . import _device, _emulated, _library, _problem
from ._errors import InvalidArgument, Unsupported
from ._problem import Choices, View

_DTYPES = {torch.bfloat16: "bfloat16", torch.float16: "float16", torch.float32: "float32", torch.int32: "int32"}
_VECTOR_BYTES = 16  # what kernels read and write at a time: addresses and strides of q, k, v and their like are multiples


def _view(tensor):
    return View(tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), _DTYPES.get(tensor.dtype, str(tensor.dtype)))


def _readable(tensor):
    """The tensor, or a copy of one whose channels do not lie side by side or whose rows start where no kernel reads."""
    if tensor.dim() < 3 or tensor.dtype == torch.float32:
        return tensor if tensor.numel() == 0 or tensor.stride(-1) == 1 else tensor.contiguous()
    item = tensor.element_size()
    if tensor.stride(-1) == 1 and tensor.data_ptr() % _VECTOR_BYTES == 0 and all(
            stride * item % _VECTOR_BYTES == 0 for stride in tensor.stride()[:-1]):
        return tensor
    return tensor.clone(memory_format=torch.contiguous_format)


def _given(names, tensors):
    """Those of the tensors that are not None, by name, as kernels can read them."""
    given = {}
    device = tensors[0].device
    for name, tensor in zip(names, tensors):
        if tensor is None:
            continue
        if tensor.device != device:
            raise InvalidArgument(f"{name} is on {tensor.device}; accepted: {device}, as {names[0]}")
        given[name] = _readable(tensor) if device.type == "cuda" else tensor.contiguous()
    return given


def _run(which, inputs, outputs, chosen):
    views = {name: _view(tensor) for name, tensor in outputs.items()}
    if next(iter(inputs.values())).device.type == "cuda":
        _run_on_gpu(which, {**{name: _view(tensor) for name, tensor in inputs.items()}, **views}, chosen, outputs)
    else:
        _emulated.run(which, {name: _view(tensor) for name, tensor in inputs.items()}, views, chosen)


def _run_on_gpu(which, views, chosen, outputs):
    where = next(iter(outputs.values())).device
    device = _device.cuda(where.index)
    arguments = _problem.arguments(which, views, chosen)
    arguments.workspace_bytes = _library.workspace_bytes(which, device, arguments)
    workspace = torch.empty(arguments.workspace_bytes, dtype=torch.uint8, device=where)
    arguments.workspace = workspace.data_ptr()
    arguments.stream = torch.cuda.current_stream(where).cuda_stream
    which.run(device, byref(arguments))


_SEQUENCES = "cu_seqlens_q", "cu_seqlens_k", "seqused_q", "seqused_k"
_SEQUENCES_SCHEMA = ", ".join(f"Tensor? {name}" for name in _SEQUENCES)
_CHOICES_SCHEMA = "float? scale, bool causal, int left, int right, bool deterministic"
torch.library.define(
    "flashback_attention::forward",
    f"(Tensor q, Tensor k, Tensor v, Tensor? sink, {_SEQUENCES_SCHEMA}, {_CHOICES_SCHEMA}, bool differentiated) "
    "-> (Tensor out, Tensor lse)", tags=(torch.Tag.pt2_compliant_tag,))
torch.library.define(
    "flashback_attention::backward",
    "(Tensor q, Tensor k, Tensor v, Tensor out, Tensor dout, Tensor lse, Tensor? dlse, Tensor? sink, "
    f"{_SEQUENCES_SCHEMA}, {_CHOICES_SCHEMA}) -> (Tensor dq, Tensor dk, Tensor dv, Tensor dsink)",
    tags=(torch.Tag.pt2_compliant_tag,))


def _forward_outputs(q):
    rows, heads = q.shape[-3:-1]
    return q.new_empty(q.shape), q.new_empty((*q.shape[:-3], heads, rows), dtype=torch.float32)


def _backward_outputs(q, k, v, sink):
    return (q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape),
            q.new_empty((0,) if sink is None else sink.shape, dtype=torch.float32))


@torch.library.impl("flashback_attention::forward", ("cpu", "cuda"))
def _forward(q, k, v, sink, cu_seqlens_q, cu_seqlens_k, seqused_q, seqused_k, scale, causal, left, right, deterministic,
             differentiated):
    inputs = _given(("q", "k", "v", "sink", *_SEQUENCES), (q, k, v, sink, cu_seqlens_q, cu_seqlens_k, seqused_q,
                                                           seqused_k))
    chosen = Choices(scale, causal, left, right)
    views = {name: _view(tensor) for name, tensor in inputs.items()}
    _problem.check(views)
    if differentiated:  # what the backward pass would refuse later is refused now
        device = _device.cuda(q.device.index) if q.device.type == "cuda" else _device.emulator()
        _library.workspace_bytes(_library.BACKWARD, device,
                                 _problem.arguments(_library.BACKWARD, views,
                                                    chosen._replace(deterministic=_deterministic(deterministic))))
    out, lse = _forward_outputs(q)
    _run(_library.FORWARD, inputs, {"out": out, "lse": lse}, chosen)
    return out, lse


@torch.library.impl("flashback_attention::backward", ("cpu", "cuda"))
def _backward(q, k, v, out, dout, lse, dlse, sink, cu_seqlens_q, cu_seqlens_k, seqused_q, seqused_k, scale, causal, left,
              right, deterministic):
    inputs = _given(("q", "k", "v", "out", "dout", "lse", "dlse", "sink", *_SEQUENCES),
                    (q, k, v, out, dout, lse, dlse, sink, cu_seqlens_q, cu_seqlens_k, seqused_q, seqused_k))
    _problem.check({name: _view(tensor) for name, tensor in inputs.items()})
    gradients = _backward_outputs(q, k, v, sink)
    outputs = dict(zip(("dq", "dk", "dv", "dsink"), gradients))
    if sink is None:
        del outputs["dsink"]
    _run(_library.BACKWARD, inputs, outputs, Choices(scale, causal, left, right, _deterministic(deterministic)))
    return gradients


def _deterministic(asked):
    return asked or torch.are_deterministic_algorithms_enabled()


@torch.library.register_fake("flashback_attention::forward")
def _(q, k, v, sink, *others):
    return _forward_outputs(q)


@torch.library.register_fake("flashback_attention::backward")
def _(q, k, v, out, dout, lse, dlse, sink, *others):
    return _backward_outputs(q, k, v, sink)


def _keep(ctx, inputs, output):
    q, k, v, sink, *sequences = inputs[:8]
    ctx.save_for_backward(q, k, v, *output, sink, *sequences)
    ctx.choices = inputs[8:13]
    ctx.set_materialize_grads(False)  # None, not zeros, where the loss does not depend on lse


def _gradients(ctx, dout, dlse):
    q, k, v, out, lse, sink, *sequences = ctx.saved_tensors
    if dout is None:
        dout = torch.zeros_like(out)
    dq, dk, dv, dsink = torch.ops.flashback_attention.backward(q, k, v, out, dout, lse, dlse, sink, *sequences, *ctx.choices)
    return (dq, dk, dv, None if sink is None else dsink, *[None] * 10)


def _no_second_order(ctx, *gradients):
    raise Unsupported("the gradient of a gradient of attention was asked for; flashback_attention has first-order "
                      "gradients only; accepted: create_graph=False, or torch's math attention for this layer")


torch.library.register_autograd("flashback_attention::forward", _gradients, setup_context=_keep)
torch.library.register_autograd("flashback_attention::backward", _no_second_order)


def forward(q, k, v, sink, sequences, chosen):
    """(out, lse), differentiable in q, k, v and sink, also through lse. A sink of 16 bits is widened."""
    tensors = {"q": q, "k": k, "v": v, "sink": sink, **dict(zip(_SEQUENCES, sequences))}
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor) and (tensor is not None or name in "qkv"):
            kinds = "a NumPy array or a tensor of torch" if name == "q" else "a tensor of torch, as q"
            raise InvalidArgument(f"{name} is a {type(tensor).__name__}; accepted: {kinds}")
    if sink is not None:
        sink = sink.float()
    differentiated = torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad or
                                                  (sink is not None and sink.requires_grad))
    return torch.ops.flashback_attention.forward(q, k, v, sink, *sequences, *chosen, differentiated)
