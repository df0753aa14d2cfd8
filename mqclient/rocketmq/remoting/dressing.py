"""Owns what every request gets before it leaves: the namespace it is of, and the signature, which is always last."""

from __future__ import annotations

from typing import Any

from mqclient.errors import ConfigError
from mqclient.rocketmq.signing import ACL


class Dresser:
    """Takes a frame apart and puts it together again: a few µs, paid only by clients that have one of these options."""

    __slots__ = ("_remoting", "auth", "namespace")

    def __init__(self, remoting: Any, auth: ACL | None, namespace: str | None) -> None:
        if auth is not None and not isinstance(auth, ACL):
            raise ConfigError(
                f"auth= is {type(auth).__name__}: rocketmq.acl(access_key, secret_key, token=None) makes one"
            )
        self._remoting = remoting
        self.auth = auth
        self.namespace = namespace

    @property
    def needed(self) -> bool:
        return self.auth is not None or self.namespace is not None

    def dress(self, frame: bytes) -> bytes:
        """The same request with the fields that belong to everyone."""
        (request,) = self._remoting.FrameReader().feed(frame)
        fields = dict(request.fields)
        if self.namespace is not None:
            fields.update(nsd="true", ns=self.namespace)
        if self.auth is not None:
            fields.update(self.auth.fields())
            fields["Signature"] = self.auth.sign(fields, request.body)
        dressed: bytes = self._remoting.encode_frame(
            request.code,
            request.opaque,
            flag=request.flag,
            fields=fields,
            body=request.body,
            remark=request.remark,
            language=request.language,
            version=request.version,
            serialize=request.serialize,
        )
        return dressed
