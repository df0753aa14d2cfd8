"""Owns what every request gets before it leaves: the names of its namespace, and the signature, always last."""

from __future__ import annotations

from typing import Any

from mqclient.errors import ConfigError
from mqclient.rocketmq.remoting.namespaces import Names
from mqclient.rocketmq.signing import ACL


class Dresser:
    """Takes a frame apart and puts it together again: a few µs, paid only by clients that have one of these options."""

    __slots__ = ("_names", "_remoting", "_v2", "auth")

    def __init__(self, remoting: Any, auth: ACL | None, names: Names | None = None, v2: str | None = None) -> None:
        """`names`: of a namespace in the names themselves; `v2`: of one that requests tell in a field."""
        if auth is not None and not isinstance(auth, ACL):
            raise ConfigError(
                f"auth= is {type(auth).__name__}: rocketmq.acl(access_key, secret_key, token=None) makes one"
            )
        self._remoting = remoting
        self.auth = auth
        self._names = names
        self._v2 = v2

    @property
    def needed(self) -> bool:
        return any(one is not None for one in (self.auth, self._names, self._v2))

    def dress(self, frame: bytes) -> bytes:
        """The same request with the fields that belong to everyone."""
        (request,) = self._remoting.FrameReader().feed(frame)
        fields, body = dict(request.fields), request.body
        if self._names is not None:
            body = self._names.request(request.code, fields, bytes(body))
        if self._v2 is not None:
            fields.update(nsd="true", ns=self._v2)
        if self.auth is not None:
            fields.update(self.auth.fields())
            fields["Signature"] = self.auth.sign(fields, body)
        dressed: bytes = self._remoting.encode_frame(
            request.code,
            request.opaque,
            flag=request.flag,
            fields=fields,
            body=body,
            remark=request.remark,
            language=request.language,
            version=request.version,
            serialize=request.serialize,
        )
        return dressed
