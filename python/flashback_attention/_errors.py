"""What the library refuses, as exceptions. Each carries the library's own sentence."""


class FlashbackError(Exception):
    """Any refusal or failure of this package."""


class InvalidArgument(FlashbackError, ValueError):
    """An argument breaks a rule; the sentence says which, and what would be accepted."""


class Unsupported(FlashbackError, NotImplementedError):
    """A legal question that no kernel here answers."""


class DeviceFailure(FlashbackError, RuntimeError):
    """The device, or the library itself, failed."""
