"""What may be wrong is guessed from how it failed, and never from the text."""

from __future__ import annotations

import errno
import socket
import ssl
from typing import Any

import pytest

from mqclient.core import causes
from mqclient.errors import ConfigError, DeadlineError, LinkError, ProtocolError
from mqclient.rocketmq.remoting import advice


def lost(cause: BaseException | None) -> LinkError:
    error = LinkError("could not connect")
    error.__cause__ = cause
    return error


def of_certificate(code: int) -> Any:
    error = ssl.SSLCertVerificationError("certificate verify failed")
    error.verify_code = code
    return error


@pytest.mark.parametrize(
    ("cause", "step"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), advice.REFUSED),
        (socket.gaierror(-2, "Name or service not known"), causes.UNKNOWN),
        (OSError(errno.EHOSTUNREACH, "no route"), causes.NO_WAY),
        (TimeoutError(errno.ETIMEDOUT, "timed out"), causes.NO_WAY),
        (DeadlineError("the time given ran out"), causes.NO_WAY),
        (ProtocolError("frame of 1213486160 bytes"), advice.OTHER_PROTOCOL),
        (of_certificate(20), advice.NOT_TRUSTED),
        (of_certificate(9), causes.NOT_VALID_NOW),
        (of_certificate(10), causes.NOT_VALID_NOW),
        (ssl.SSLError("wrong version number"), advice.NO_TLS),
        (ConnectionResetError(errno.ECONNRESET, "reset"), advice.CLOSED),
        (None, advice.CLOSED),
    ],
    ids=repr,
)
def test_the_next_step_after_each_failure(cause: BaseException | None, step: str) -> None:
    assert advice.hint(lost(cause)) == f" ({step})"


def test_who_says_nothing_is_asked_about() -> None:
    assert advice.hint(DeadlineError("no answer")) == f" ({advice.SILENT})"


@pytest.mark.parametrize("other", [None, ConfigError("x"), lost(OSError(errno.EMFILE, "too many"))], ids=repr)
def test_where_nothing_is_known_nothing_is_said(other: BaseException | None) -> None:
    assert advice.hint(other) == ""


def test_who_hangs_up_on_an_encrypted_connection_may_not_speak_tls() -> None:
    assert advice.hint(lost(ConnectionResetError()), encrypted=True) == f" ({advice.NO_TLS})"
