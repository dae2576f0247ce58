"""From tensors to the C struct: what must hold between tensors is checked here, in the words of the Python arguments;
what one tensor or number must be is checked by the library."""

from typing import NamedTuple, Optional, Tuple

from . import _library
from ._errors import InvalidArgument


class View(NamedTuple):
    """A tensor of any framework: where it is, and its strides in elements."""

    address: int
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]
    dtype: str


class Choices(NamedTuple):
    """Everything about a pass that is no tensor. `scale` None means 1 / sqrt(head_dim); a bound of -1 is none."""

    scale: Optional[float] = None
    causal: bool = False
    left: int = -1
    right: int = -1
    deterministic: bool = False


def choices(scale, causal, window, deterministic=False):
    """What a caller wrote, in its own words, as Choices."""
    if scale is not None and scale == 0:
        raise InvalidArgument("scale is 0; accepted: None, which means 1 / sqrt(head_dim), or a number other than 0")
    if not hasattr(window, "__len__") or len(window) != 2:  # any pair will do, a tensor of two as well
        raise InvalidArgument(f"window is {window!r}; accepted: (left, right), where -1 is no bound")
    left, right = (-1 if bound is None else int(bound) for bound in window)
    return Choices(None if scale is None else float(scale), bool(causal), left, right, bool(deterministic))


def _shaped(name, view, shape, meaning):
    if view.shape != shape:
        raise InvalidArgument(f"{name} has the shape {view.shape}; accepted: {shape}, {meaning}")


def _typed(name, view, dtype, why):
    if view.dtype != dtype:
        raise InvalidArgument(f"{name} is {view.dtype}; accepted: {dtype}, {why}")


def check(views):
    """Whether the tensors of a pass belong together. `views` maps the library's names to Views; what is not there was
    not given."""
    q, k = views["q"], views["k"]
    packed = "cu_seqlens_q" in views
    if packed != ("cu_seqlens_k" in views):
        raise InvalidArgument("one of cu_seqlens_q and cu_seqlens_k is given; accepted: both, or neither")
    layout = "(rows, heads, head_dim)" if packed else "(batch, rows, heads, head_dim)"
    rank = 3 if packed else 4
    for name in "q", "k", "v":
        view = views[name]
        if len(view.shape) != rank:
            raise InvalidArgument(f"{name} has {len(view.shape)} dimensions; accepted: {rank}, {layout}")
        if view.dtype not in _library.DTYPES:
            raise InvalidArgument(f"{name} is {view.dtype}; accepted: {', '.join(_library.DTYPES)}")
        _typed(name, view, q.dtype, "as q")
    if not packed and k.shape[0] != q.shape[0]:
        raise InvalidArgument(f"k has {k.shape[0]} sequences (dimension 0); accepted: {q.shape[0]}, as q")
    if k.shape[-1] != q.shape[-1]:
        raise InvalidArgument(f"k has the head dimension {k.shape[-1]}; accepted: {q.shape[-1]}, as q")
    _shaped("v", views["v"], k.shape, "as k")
    heads, rows = q.shape[-2], q.shape[-3]
    if "sink" in views:
        _shaped("sink", views["sink"], (heads,), "a logit of each query head")
        _typed("sink", views["sink"], "float32", "whatever q is")
    for name in "out", "dout":
        if name in views:
            _shaped(name, views[name], q.shape, "as q")
            _typed(name, views[name], q.dtype, "as q")
    for name in "lse", "dlse":
        if name in views:
            meaning = "(heads, rows)" if packed else "(batch, heads, rows)"
            _shaped(name, views[name], (heads, rows) if packed else (q.shape[0], heads, rows), f"{meaning} of q")
            _typed(name, views[name], "float32", "whatever q is")
    _check_sequences(views, packed)


def _check_sequences(views, packed):
    for name in "cu_seqlens_q", "cu_seqlens_k", "seqused_q", "seqused_k":
        if name in views:
            if len(views[name].shape) != 1:
                raise InvalidArgument(f"{name} has {len(views[name].shape)} dimensions; accepted: 1")
            _typed(name, views[name], "int32", "which the kernels read")
    if not packed:
        return
    offsets = views["cu_seqlens_q"].shape[0]
    if offsets == 0:
        raise InvalidArgument("cu_seqlens_q is empty; accepted: one number more than there are sequences")
    _shaped("cu_seqlens_k", views["cu_seqlens_k"], (offsets,), "as cu_seqlens_q")
    for name in "seqused_q", "seqused_k":
        if name in views:
            _shaped(name, views[name], (offsets - 1,), "a length for each sequence")


def arguments(which, views, chosen):
    """The struct of pass `which` for tensors that `check` has let through."""
    a = which.Arguments()
    a.size = _library.ctypes.sizeof(a)
    q, k = views["q"], views["k"]
    packed = len(q.shape) == 3
    a.dtype = _library.DTYPES[q.dtype]
    a.batch = views["cu_seqlens_q"].shape[0] - 1 if packed else q.shape[0]
    a.seqlen_q, a.heads, a.head_dim = q.shape[-3:]
    a.seqlen_k, a.kv_heads = k.shape[-3:-1]
    a.causal = chosen.causal
    if chosen.left != -1 or chosen.right != -1:
        a.window = _library.Window(1, chosen.left, chosen.right)
    if chosen.scale is not None:
        a.scale = chosen.scale
    if chosen.deterministic:
        a.deterministic = 1
    for name, view in views.items():
        rank = len(view.shape)
        if rank == 1:
            setattr(a, name, view.address)
        elif name.endswith("lse"):
            setattr(a, name, _library.Lse(view.address, 0 if packed else view.strides[0], view.strides[-2]))
        else:
            setattr(a, name, _library.Tensor(view.address, 0 if packed else view.strides[0], *view.strides[-3:-1]))
    return a
