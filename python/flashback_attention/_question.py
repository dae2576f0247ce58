"""Questions, kept: what the shapes and choices of a call decide is filled in and asked of the library once. The same question
again costs a copy of the struct and the addresses."""

from ctypes import byref, c_int64, sizeof

from . import _library, _problem

_WORD_BYTES = 8
_SOMEWHERE = 1 << 20  # an address for what is there: the library's answer about workspace depends on what is null


class Question:
    """A pass over tensors that `_problem.check` has let through, on one device. `views` have no addresses yet."""

    def __init__(self, which, device, views, chosen):
        self.which, self.device = which, device
        self.arguments = _problem.arguments(
            which, {name: view._replace(address=_SOMEWHERE) for name, view in views.items()}, chosen)
        self.arguments.workspace_bytes = _library.workspace_bytes(which, device, self.arguments)
        # The struct as words: an address is one, and the first of what describes a tensor.
        self._words = (c_int64 * (sizeof(self.arguments) // _WORD_BYTES)).from_buffer(self.arguments)
        self._addresses = [_word(which, name) for name in views]
        self._workspace, self._stream = _word(which, "workspace"), _word(which, "stream")

    @property
    def workspace_bytes(self):
        return self.arguments.workspace_bytes

    def enqueue(self, addresses, workspace, stream):
        """Runs the pass on memory at `addresses`, in the order of the views."""
        words = type(self._words).from_buffer_copy(self._words)
        for word, address in zip(self._addresses, addresses):
            words[word] = address
        words[self._workspace] = workspace
        words[self._stream] = stream
        self.which.run(self.device, byref(words))


def _word(which, name):
    return getattr(which.Arguments, name).offset // _WORD_BYTES
