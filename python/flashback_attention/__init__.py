"""Attention and its gradients on NVIDIA Blackwell and Hopper, for PyTorch; and for NumPy, on an emulator that executes
the very kernels.

    attention, attention_varlen     the layouts and masks of flash-attention's functions; differentiable under torch
    attention_backward              gradients over NumPy arrays
    emulate                         which architecture the emulator stands for
"""

from ._device import emulate
from ._errors import DeviceFailure, FlashbackError, InvalidArgument, Unsupported
from ._functions import attention, attention_backward, attention_varlen

__all__ = ["attention", "attention_backward", "attention_varlen", "emulate", "DeviceFailure", "FlashbackError",
           "InvalidArgument", "Unsupported"]
