"""Credentials: asked when needed, never shown."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.errors import ConfigError
from mqclient.pulsar.auth import NoAuthentication, token


def test_nothing_to_show() -> None:
    assert (NoAuthentication().method, NoAuthentication().data()) == ("none", None)


def test_a_token_is_asked_for_each_time_and_not_shown() -> None:
    values = iter(["first", " second\n"])
    auth = token(lambda: next(values))
    assert [auth.data(), auth.data()] == [b"first", b"second"]
    assert "secret" not in repr(token("secret"))
    assert token("secret").data() == b"secret"
    wrong: Any = b"bytes"
    with pytest.raises(ConfigError):
        token(wrong)
