"""Owns what is told to whoever enters the engine while his own thread is inside."""

from __future__ import annotations

import threading
from types import FrameType


class EnteredTwice(RuntimeError):
    """What may only run outside ran inside: a bug of ours, or a signal handler or finalizer of the user's."""


def refuse_nested(frame: FrameType | None) -> None:
    """An entry of this thread was not left, as `frame` enters: by Ctrl-C, in the main thread, or is somebody in it?

    Who was interrupted by Ctrl-C has no frames any more. Whom a signal handler or a finalizer interrupted has.
    """
    if threading.current_thread() is not threading.main_thread() or _is_at_work(frame):
        raise EnteredTwice(
            "entered twice: a callback ran inside the engine. From a signal handler or a finalizer, which may come at "
            "any moment, do not use a client: set a flag, or start a thread that does it"
        )


def _is_at_work(frame: FrameType | None) -> bool:
    """Whether the library is on the stack once more, above whoever called it now."""
    ours, changes = True, 0
    while frame is not None and changes < 2:
        if frame.f_globals.get("__name__", "").startswith("mqclient.") is not ours:
            ours = not ours
            changes += 1
        frame = frame.f_back
    return changes == 2
