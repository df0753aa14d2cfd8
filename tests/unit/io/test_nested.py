"""Who was interrupted: somebody at work, or somebody whom Ctrl-C took away."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from mqclient.io.nested import EnteredTwice, refuse_nested
from tests.support.calls import in_threads


def called(by: list[str]) -> Any:
    """A frame of the last of these modules, called by the one before it, and so on."""
    source = "def call(rest): return rest[0](rest[1:]) if rest else sys._getframe()"
    calls = []
    for name in by:
        module: dict[str, Any] = {"__name__": name, "sys": sys}
        exec(source, module)
        calls.append(module["call"])
    return calls[0](calls[1:])


US, ENGINE, FACE = "__main__", "mqclient.rocketmq.producer", "mqclient.rocketmq.sync_producer"


def test_who_comes_again_after_ctrl_c_finds_nobody() -> None:
    refuse_nested(called([US, FACE, ENGINE]))
    refuse_nested(None)


@pytest.mark.parametrize("above", [[US, FACE], [US, FACE, ENGINE], [FACE]])
def test_a_signal_handler_finds_whom_it_interrupted(above: list[str]) -> None:
    frame: FrameType = called([*above, US, FACE, ENGINE])
    with pytest.raises(EnteredTwice, match="do not use a client: set a flag"):
        refuse_nested(frame)


def test_another_thread_is_never_interrupted_by_ctrl_c() -> None:
    def elsewhere() -> None:
        with pytest.raises(EnteredTwice, match="a callback ran inside the engine"):
            refuse_nested(called([US, FACE]))

    in_threads(elsewhere)
