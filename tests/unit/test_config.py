"""Options that more than one protocol has."""

from __future__ import annotations

import pytest

from mqclient.config import TLS, Timeouts
from mqclient.errors import ConfigError


def test_no_secret_in_the_repr() -> None:
    assert "swordfish" not in repr(TLS(certificate="a.pem", key="a.key", key_password="swordfish"))


def test_a_key_needs_its_certificate() -> None:
    with pytest.raises(ConfigError, match="certificate"):
        TLS(key="a.key")


@pytest.mark.parametrize("name", ["connect", "request", "keep_alive", "close"])
def test_timeouts_are_positive(name: str) -> None:
    assert getattr(Timeouts(), name) > 0
    with pytest.raises(ConfigError, match=name):
        Timeouts(**{name: 0})
