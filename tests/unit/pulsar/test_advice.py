"""Each way in which a connection fails to come to be has a next step of its own."""

from __future__ import annotations

import socket
import ssl
from typing import Any

import pytest

from mqclient.core import causes
from mqclient.errors import ClosedError, DeadlineError, LinkError, MQError, ProtocolError
from mqclient.pulsar import advice


def untrusted(code: int) -> ssl.SSLCertVerificationError:
    error: Any = ssl.SSLCertVerificationError("certificate verify failed")
    error.verify_code = code
    found: ssl.SSLCertVerificationError = error
    return found


@pytest.mark.parametrize(
    ("cause", "encrypted", "step"),
    [
        (ProtocolError("bytes"), False, advice.OTHER_PROTOCOL),
        (untrusted(20), True, advice.NOT_TRUSTED),
        (untrusted(10), True, causes.NOT_VALID_NOW),
        (ssl.SSLError("wrong version"), True, advice.NO_TLS),
        (socket.gaierror(-2, "unknown"), False, causes.UNKNOWN),
        (ConnectionRefusedError(111, "refused"), False, advice.REFUSED),
        (TimeoutError("late"), False, causes.NO_WAY),
        (DeadlineError("late"), False, causes.NO_WAY),
        (OSError(113, "no route"), False, causes.NO_WAY),
        (None, False, advice.CLOSED),
        (ConnectionResetError(104, "reset"), False, advice.CLOSED),
        (None, True, advice.NO_TLS),
    ],
)
def test_the_next_step(cause: BaseException | None, encrypted: bool, step: str) -> None:
    lost = LinkError("could not connect").about(remote="a:1")
    lost.__cause__ = cause
    found = advice.advised(lost, encrypted=encrypted)
    assert str(found) == f"could not connect ({step})"
    assert (found.remote, found.__cause__, found.retriable) == ("a:1", cause, True)


def test_where_there_is_nothing_to_say() -> None:
    errors: list[MQError] = [ClosedError("closed"), LinkError("odd")]
    errors[1].__cause__ = OSError(5, "odd")
    for error in errors:
        assert advice.advised(error, encrypted=False) is error
