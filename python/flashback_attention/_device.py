"""The devices of this process, each opened once. They stay open until it ends."""

import threading
from ctypes import byref, c_void_p

from . import _library

_opened = {}
_opening = threading.Lock()
_emulator = ("sm90", 0)  # the quicker of the two to emulate


def _open(key, function, *arguments):
    device = _opened.get(key)
    if device is None:
        with _opening:
            device = _opened.get(key)
            if device is None:
                device = c_void_p()
                function(*arguments, byref(device))
                device = _opened[key] = device.value
    return device


def cuda(ordinal):
    """The GPU that CUDA numbers `ordinal`, in the context that frameworks use."""
    return _open(ordinal, _library.device_cuda, ordinal)


def emulator():
    """The emulator, as `emulate` last chose it."""
    arch, threads = _emulator
    return _open(_emulator, _library.device_emulator, arch.encode(), threads)


def emulate(arch="sm90", threads=0):
    """Chooses what arrays in the host's memory run on from here on: the emulator as `arch`, "sm100" or "sm90",
    with so many host threads (0: one for each core). Results do not depend on the threads."""
    global _emulator
    before, _emulator = _emulator, (arch, threads)
    try:
        emulator()
    except Exception:
        _emulator = before
        raise
