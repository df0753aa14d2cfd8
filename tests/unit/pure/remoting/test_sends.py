"""Sends to one queue: the same bytes as by the general call."""

from __future__ import annotations

import pytest

from mqclient._pure import remoting
from mqclient.errors import ConfigError


@pytest.mark.parametrize("batch", [True, False])
def test_a_head_makes_what_the_general_call_makes(batch: bool) -> None:
    head = remoting.SendHead("g", "t", 3, code=320, batch=batch, broker="b", default_queues=8)
    assert head.frame(7, b"a\x01b\x02", b"body", 5, 1, 2, True) == remoting.encode_send(
        7, "g", "t", 3, b"a\x01b\x02", b"body", born_at=5, code=320, sys_flag=1, flag=2, batch=batch, broker="b",
        default_queues=8, oneway=True,
    )  # fmt: skip


def test_what_cannot_be_encoded() -> None:
    with pytest.raises(ConfigError):
        remoting.SendHead("\ud800", "t", 3)
    with pytest.raises(ConfigError):
        remoting.SendHead("g", "t", 3).frame(7, b"\xff", b"", 5)
