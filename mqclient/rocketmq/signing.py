"""Owns the signature of requests by access key and secret key (ACL 1.0; 2.0 brokers take the same)."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field

from mqclient.errors import ConfigError


@dataclass(frozen=True)
class ACL:
    """Credentials; made by `acl`. The secret never leaves this process, and neither it nor the token is ever shown."""

    access_key: str
    secret_key: str = field(repr=False)
    token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name in ("access_key", "secret_key"):
            if not getattr(self, name) or not isinstance(getattr(self, name), str):
                raise ConfigError(
                    f"acl: {name} is missing: both keys are needed, as the broker's administrator gave them"
                )

    def fields(self) -> dict[str, str]:
        """What tells the broker whose signature it is."""
        named = {"AccessKey": self.access_key}
        return named if self.token is None else {**named, "SecurityToken": self.token}

    def sign(self, fields: Mapping[str, str], body: bytes) -> str:
        """HMAC-SHA1, base64, over the values of all fields in the order of their names, and the body."""
        content = "".join(fields[name] for name in sorted(fields) if name != "Signature").encode() + body
        return b64encode(hmac.new(self.secret_key.encode(), content, hashlib.sha1).digest()).decode()


def acl(access_key: str, secret_key: str, token: str | None = None) -> ACL:
    """Credentials of a client: `Client(…, auth=rocketmq.acl("access", "secret"))`; `token`: of an STS service.

    >>> acl("reader", "swordfish")
    ACL(access_key='reader')
    """
    return ACL(access_key, secret_key, token)
