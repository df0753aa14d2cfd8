"""How a connection failed is told by the kind of the error behind it, and by nothing that it says."""

from __future__ import annotations

import errno
import socket
import ssl
from typing import Any

import pytest

from mqclient.core import causes
from mqclient.core.causes import Cause
from mqclient.errors import DeadlineError, ProtocolError


def of_certificate(code: int) -> Any:
    error = ssl.SSLCertVerificationError("certificate verify failed")
    error.verify_code = code
    return error


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "x"), Cause.REFUSED),
        (socket.gaierror(-2, "x"), Cause.UNKNOWN),
        (OSError(errno.EHOSTUNREACH, "x"), Cause.NO_WAY),
        (TimeoutError(errno.ETIMEDOUT, "x"), Cause.NO_WAY),
        (DeadlineError("x"), Cause.NO_WAY),
        (ProtocolError("x"), Cause.OTHER_PROTOCOL),
        (of_certificate(20), Cause.NOT_TRUSTED),
        (of_certificate(9), Cause.NOT_VALID_NOW),
        (of_certificate(10), Cause.NOT_VALID_NOW),
        (ssl.SSLError("x"), Cause.NO_TLS),
        (OSError(errno.EMFILE, "x"), None),
    ],
    ids=repr,
)
@pytest.mark.parametrize("encrypted", [False, True])
def test_the_kind_of_a_failure(cause: BaseException, kind: Cause | None, encrypted: bool) -> None:
    assert causes.found(cause, encrypted=encrypted) is kind


@pytest.mark.parametrize("cause", [None, ConnectionResetError(errno.ECONNRESET, "x")], ids=repr)
def test_who_hangs_up_without_a_word_may_expect_tls_or_not_speak_it(cause: BaseException | None) -> None:
    assert causes.found(cause, encrypted=False) is Cause.CLOSED
    assert causes.found(cause, encrypted=True) is Cause.NO_TLS
