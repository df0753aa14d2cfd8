"""Owns who is let in: tokens, given or signed, names with passwords, client certificates; and until when.

Settings: `pulsar_token` (one token), `tokenSecretKey` (bytes: tokens are JWTs signed with it by HMAC-SHA256, whose
`exp` counts), `pulsar_basic` (user to password), `pulsar_tls_roles` (True: a client certificate will do, its common
name is the role), `anonymousUserRole` (a role for whoever brings nothing). With none of them everybody is let in.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from mqclient.core import base64url

if TYPE_CHECKING:
    from mqclient.broker.control import Clock


class Denied(Exception):
    """Not let in; the text is for the broker's log, the client hears less."""


class Principal(NamedTuple):
    """Who it is, and the wall time (ms) at which it has to show its credentials again."""

    role: str
    expires: int | None = None


NOBODY = Principal("")
"""Where nobody is asked."""


class Authentication:
    """Looks at credentials; settings are read each time, so that a test may change them."""

    def __init__(self, settings: Mapping[str, Any], clock: Clock) -> None:
        self._settings = settings
        self._clock = clock

    @property
    def enabled(self) -> bool:
        wanted = ("pulsar_token", "tokenSecretKey", "pulsar_basic", "pulsar_tls_roles")
        return any(self._settings.get(name) for name in wanted)

    def check(self, method: str, data: bytes, certificate: Mapping[str, Any] | None = None) -> Principal:
        """Who shows this; Denied if it is not good."""
        if not self.enabled:
            return NOBODY
        if method == "token":
            return self._token(data)
        if method == "basic":
            return self._basic(data)
        if method == "tls" and self._settings.get("pulsar_tls_roles"):
            return _common_name(certificate)
        anonymous = self._settings.get("anonymousUserRole")
        if anonymous and method in ("", "none"):
            return Principal(str(anonymous))
        raise Denied(f"authentication method {method!r} is not good here")

    def expired(self, principal: Principal) -> bool:
        return principal.expires is not None and principal.expires <= self._clock.wall_ms()

    def _token(self, data: bytes) -> Principal:
        given = self._settings.get("pulsar_token")
        if given and hmac.compare_digest(data, str(given).encode()):
            return Principal("token")
        secret = self._settings.get("tokenSecretKey")
        if not secret:
            raise Denied("the token is another one")
        principal = read_token(data, secret)
        if self.expired(principal):
            raise Denied("the token has expired")
        return principal

    def _basic(self, data: bytes) -> Principal:
        user, _, password = data.decode("utf-8", "replace").partition(":")
        known = dict(self._settings.get("pulsar_basic") or {}).get(user)
        if known is None or not hmac.compare_digest(password.encode(), str(known).encode()):
            raise Denied("the user or the password is wrong")
        return Principal(user)


def read_token(data: bytes, secret: bytes) -> Principal:
    """What a signed token says; Denied if its signature is not by this secret.

    >>> read_token(make_token(b"secret", "me"), b"secret")
    Principal(role='me', expires=None)
    """
    head, _, signature = data.rpartition(b".")
    try:
        algorithm = json.loads(_decoded(head.partition(b".")[0]))["alg"]
        claims = json.loads(_decoded(head.partition(b".")[2]))
        role, expires = str(claims["sub"]), claims.get("exp")
        good = hmac.compare_digest(hmac.new(secret, head, hashlib.sha256).digest(), _decoded(signature))
        until = None if expires is None else int(float(expires) * 1000)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise Denied(f"the token cannot be read: {error}") from None
    if algorithm != "HS256" or not good:
        raise Denied("the token's signature is not good")
    return Principal(role, until)


def make_token(secret: bytes, role: str, expires: float | None = None) -> bytes:
    """A token that the broker takes; `expires`: seconds since the epoch."""
    claims = {"sub": role} if expires is None else {"sub": role, "exp": expires}
    parts = (json.dumps(part, separators=(",", ":")).encode() for part in ({"alg": "HS256"}, claims))
    head = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts)
    signature = hmac.new(secret, head, hashlib.sha256).digest()
    return head + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")


def _decoded(part: bytes) -> bytes:
    return base64url.decode(part.decode("ascii"))


def _common_name(certificate: Mapping[str, Any] | None) -> Principal:
    for part in (certificate or {}).get("subject", ()):
        for name, value in part:
            if name == "commonName":
                return Principal(str(value))
    raise Denied("no client certificate was shown")


def of_header(header: str) -> tuple[str, bytes]:
    """Method and data of an Authorization header.

    >>> of_header("Bearer abc"), of_header("Basic dTpw"), of_header("")
    (('token', b'abc'), ('basic', b'u:p'), ('none', b''))
    """
    scheme, _, rest = header.partition(" ")
    if scheme.lower() == "bearer":
        return "token", rest.strip().encode()
    if scheme.lower() == "basic":
        try:
            return "basic", base64.b64decode(rest, validate=True)
        except binascii.Error:
            return "basic", b""
    return "none", b""
