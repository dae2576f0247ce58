"""Attention over tensors of torch: the operators flashback_attention::forward and ::backward, and what torch asks of an
operator: shapes without data (fake kernels), gradients, and none of the second order.

On a GPU a pass is enqueued on torch's current stream, in memory of torch's allocator. Tensors on the CPU run on the
emulator."""

import functools
from typing import NamedTuple, Tuple

from . import _device, _emulated, _library, _problem
from ._errors import InvalidArgument, Unsupported
from ._problem import Choices, View
from ._question import Question

try:
    import torch
except ModuleNotFoundError as missing:
    raise InvalidArgument("q is no NumPy array, and torch is not installed; accepted: NumPy arrays, or tensors where torch "
                          "is") from missing

_DTYPES = {torch.bfloat16: "bfloat16", torch.float16: "float16", torch.float32: "float32", torch.int32: "int32"}
_VECTOR_BYTES = 16  # what kernels read and write at a time: addresses and strides of q, k, v and their like are multiples
_SEQUENCES = "cu_seqlens_q", "cu_seqlens_k", "seqused_q", "seqused_k"
_INPUTS = {"forward": ("q", "k", "v", "sink", *_SEQUENCES),
           "backward": ("q", "k", "v", "out", "dout", "lse", "dlse", "sink", *_SEQUENCES)}


class _Layout(NamedTuple):
    """A tensor without its address."""

    shape: Tuple[int, ...]
    strides: Tuple[int, ...]
    dtype: torch.dtype
    device: torch.device

    def view(self):
        return View(0, tuple(self.shape), self.strides, _DTYPES.get(self.dtype, str(self.dtype)))

    def in_vectors(self):
        """Whether kernels read it in vectors: it has channels."""
        return len(self.shape) > 2 and self.dtype != torch.float32

    def readable(self):
        """Whether channels lie side by side, and every row may start a vector."""
        if 0 in self.shape:
            return True
        item = self.dtype.itemsize
        return self.strides[-1] == 1 and (not self.in_vectors() or
                                          all(stride * item % _VECTOR_BYTES == 0 for stride in self.strides[:-1]))


def _layouts(tensors):
    """What of tensors is in a _Layout, as the key that it is: a class would take as long again to make."""
    return tuple([None if t is None else (t.shape, t.stride(), t.dtype, t.device) for t in tensors])


def _views(tensors):
    return [_Layout(*layout).view()._replace(address=tensor.data_ptr())
            for layout, tensor in zip(_layouts(tensors), tensors)]


def _packed(shape):
    """The strides of a tensor without gaps."""
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return tuple(strides)


def _output_shapes(which, inputs):
    """Names, shapes and types of what a pass returns, from its inputs or their layouts."""
    q, k, v, *others = inputs
    if which == "forward":
        *batch, rows, heads, _ = q.shape
        return ("out", q.shape, q.dtype), ("lse", (*batch, heads, rows), torch.float32)
    sink = others[4]
    return (("dq", q.shape, q.dtype), ("dk", k.shape, k.dtype), ("dv", v.shape, v.dtype),
            ("dsink", (0,) if sink is None else sink.shape, torch.float32))


class _Call:
    """What the layouts of a call decide: which tensors are copied first, what it returns, and the question itself."""

    def __init__(self, which, device, layouts, chosen, differentiated):
        layouts = [None if layout is None else _Layout(*layout) for layout in layouts]
        given = {name: layout for name, layout in zip(_INPUTS[which.name], layouts) if layout is not None}
        self.where = layouts[0].device
        for name, layout in given.items():
            if layout.device != self.where:
                raise InvalidArgument(f"{name} is on {layout.device}; accepted: {self.where}, as q")
        self.present = [i for i, layout in enumerate(layouts) if layout is not None]
        self._gaps = [i for i in self.present if not layouts[i].readable()]
        self._vectors = [i for i in self.present if layouts[i].in_vectors()]
        views = {name: layout.view() for name, layout in given.items()}
        _problem.check(views)
        if differentiated:  # what the backward pass would refuse later is refused now
            Question(_library.BACKWARD, device, views, chosen)
        self.outputs = _output_shapes(which.name, layouts)
        for name, shape, dtype in self.outputs:
            if name != "dsink" or "sink" in given:  # without one, the question ends before what is returned does
                views[name] = _Layout(shape, _packed(shape), dtype, self.where).view()
        self.question = Question(which, device, views, chosen)

    def copied(self, inputs):
        """Those of the inputs that kernels cannot read where they lie."""
        return self._gaps + [i for i in self._vectors if inputs[i].data_ptr() % _VECTOR_BYTES]


_call = functools.lru_cache(maxsize=1024)(_Call)  # two calls with the same layouts differ in addresses alone


def _run(which, inputs, chosen, differentiated=False):
    on_gpu = inputs[0].is_cuda
    device = _device.cuda(inputs[0].get_device()) if on_gpu else _device.emulator()
    call = _call(which, device, _layouts(inputs), chosen, differentiated)
    copied = call.copied(inputs) if on_gpu else call.present
    if copied:
        inputs = [tensor.clone(memory_format=torch.contiguous_format) if i in copied else tensor
                  for i, tensor in enumerate(inputs)]
        call = _call(which, device, _layouts(inputs), chosen, differentiated)
    outputs = [torch.empty(shape, dtype=dtype, device=call.where) for _, shape, dtype in call.outputs]
    inputs = [inputs[i] for i in call.present]
    if on_gpu:
        workspace = torch.empty(call.question.workspace_bytes, dtype=torch.uint8, device=call.where)
        call.question.enqueue([tensor.data_ptr() for tensor in inputs + outputs], workspace.data_ptr(),
                              torch._C._cuda_getCurrentRawStream(call.where.index))
    else:
        _emulated.run(call.question, _views(inputs), _views(outputs))
    return tuple(outputs)


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


def _chosen(scale, causal, left, right, deterministic):
    return Choices(scale, causal, left, right, deterministic or torch.are_deterministic_algorithms_enabled())


def _forward(*arguments):
    inputs, choices, differentiated = arguments[:8], arguments[8:13], arguments[13]
    return _run(_library.FORWARD, inputs, _chosen(*choices), differentiated)


def _backward(*arguments):
    return _run(_library.BACKWARD, arguments[:12], _chosen(*arguments[12:]))


torch.library.impl("flashback_attention::forward", ("cpu", "cuda"), _forward)
torch.library.impl("flashback_attention::backward", ("cpu", "cuda"), _backward)


@torch.library.register_fake("flashback_attention::forward")
def _(*arguments):
    return tuple(arguments[0].new_empty(shape, dtype=dtype) for _, shape, dtype in _output_shapes("forward", arguments))


@torch.library.register_fake("flashback_attention::backward")
def _(*arguments):
    return tuple(arguments[0].new_empty(shape, dtype=dtype) for _, shape, dtype in _output_shapes("backward", arguments))


def _keep(ctx, inputs, output):
    q, k, v, sink, *sequences = inputs[:8]
    ctx.save_for_backward(q, k, v, *output, sink, *sequences)
    ctx.choices = inputs[8:13]
    ctx.set_materialize_grads(False)  # None, not zeros, where the loss does not depend on lse


def _gradients(ctx, dout, dlse):
    q, k, v, out, lse, sink, *sequences = ctx.saved_tensors
    if dout is None:
        dout = torch.zeros_like(out)
    inputs = q, k, v, out, dout, lse, dlse, sink, *sequences
    straight = not torch.is_grad_enabled() and _straight(inputs)
    backward = _backward if straight else torch.ops.flashback_attention.backward.default
    dq, dk, dv, dsink = backward(*inputs, *ctx.choices)
    return (dq, dk, dv, None if sink is None else dsink, *[None] * 10)


def _no_second_order(ctx, *gradients):
    raise Unsupported("the gradient of a gradient of attention was asked for; flashback_attention has first-order "
                      "gradients only; accepted: create_graph=False, or torch's math attention for this layer")


torch.library.register_autograd("flashback_attention::forward", _gradients, setup_context=_keep)
torch.library.register_autograd("flashback_attention::backward", _no_second_order)


class _Differentiated(torch.autograd.Function):
    """The operator with its gradients, without torch's dispatch."""

    @staticmethod
    def forward(ctx, *arguments):
        output = _forward(*arguments)
        _keep(ctx, arguments, output)
        return output

    backward = staticmethod(_gradients)


_PLAIN = {torch.Tensor, torch.nn.Parameter, type(None)}


def _straight(tensors):
    """Whether a call may go to the kernels without torch's dispatch, which costs the host several times what the kernels'
    launches do: nobody watches operators (a compiler, a tracer, a mode, a transform), and tensors are what they seem."""
    return not (torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() or
                torch._C._are_functorch_transforms_active() or torch._C._get_tracing_state() or
                torch.overrides.has_torch_function(tensors)) and (
                    tensors[0].is_cuda or tensors[0].is_cpu) and all(map(_PLAIN.__contains__, map(type, tensors)))


def _check_types(tensors):
    for name, tensor in zip(_INPUTS["forward"], tensors):
        if not isinstance(tensor, torch.Tensor) and (tensor is not None or name in "qkv"):
            kinds = "a NumPy array or a tensor of torch" if name == "q" else "a tensor of torch, as q"
            raise InvalidArgument(f"{name} is a {type(tensor).__name__}; accepted: {kinds}")


def forward(q, k, v, sink, sequences, chosen):
    """(out, lse), differentiable in q, k, v and sink, also through lse. A sink of 16 bits is widened."""
    _check_types((q, k, v, sink, *sequences))
    if sink is not None:
        sink = sink.float()
    differentiated = torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad or
                                                  (sink is not None and sink.requires_grad))
    inputs = q, k, v, sink, *sequences
    operator = torch.ops.flashback_attention.forward.default
    if _straight(inputs):
        operator = _Differentiated.apply if differentiated else _forward
    return operator(*inputs, *chosen, differentiated)
