"""Signatures as brokers check them; secrets are never shown."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64encode

import pytest

from mqclient.errors import ConfigError
from mqclient.rocketmq.signing import acl


def test_values_in_the_order_of_names_then_the_body() -> None:
    credentials = acl("reader", "swordfish")
    fields = {**credentials.fields(), "b": "topic", "a": "group", "Signature": "old"}
    expected = hmac.new(b"swordfish", b"reader" + b"group" + b"topic" + b"body", hashlib.sha1).digest()
    assert credentials.sign(fields, b"body") == b64encode(expected).decode()


@pytest.mark.parametrize(
    ("body", "signature"), [(b"", "GeeGoP9mRvDhoVp4PD5omX0prgE="), (b"hello", "VCoakk8D+zaEPRCyxQHvWUF4988=")]
)
def test_signatures_of_the_java_client(body: bytes, signature: str) -> None:
    assert acl("rocketmq2", "12345678").sign({"topic": "TopicTest", "AccessKey": "rocketmq2"}, body) == signature


def test_the_token_is_told_and_nothing_secret_is_shown() -> None:
    credentials = acl("reader", "swordfish", "sts-token")
    assert credentials.fields() == {"AccessKey": "reader", "SecurityToken": "sts-token"}
    assert "swordfish" not in repr(credentials)
    assert "sts-token" not in repr(credentials)


@pytest.mark.parametrize(("access", "secret", "missing"), [("", "s", "access_key"), ("a", "", "secret_key")])
def test_both_keys_are_needed(access: str, secret: str, missing: str) -> None:
    with pytest.raises(ConfigError, match=missing):
        acl(access, secret)
