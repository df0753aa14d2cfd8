"""Owns the shapes of options that more than one protocol has: frozen, checked when made, no secret in their repr."""

from __future__ import annotations

from dataclasses import dataclass, field

from mqclient.errors import ConfigError


@dataclass(frozen=True)
class TLS:
    """How connections are encrypted and the other side is checked.

    `trust` is a file of trusted certificates (default: the system's); `certificate`, `key` and `key_password` are
    ours, where the broker asks for them; `server_name` replaces the host name in the check.
    """

    trust: str | None = None
    certificate: str | None = None
    key: str | None = None
    key_password: str | None = field(default=None, repr=False)
    server_name: str | None = None
    insecure_trust_anyone: bool = False
    """Whoever stands between us and the broker can then read and change everything: for tests only."""
    check_host_name: bool = True

    def __post_init__(self) -> None:
        if self.key is not None and self.certificate is None:
            raise ConfigError("tls: a key needs its certificate")
        if self.insecure_trust_anyone and self.trust is not None:
            raise ConfigError("tls: trust= says whom to trust, insecure_trust_anyone=True says everybody: give one")


@dataclass(frozen=True)
class Timeouts:
    """Seconds: to make a connection with its handshake; for one request; between signs of life; to close."""

    connect: float = 5.0
    request: float = 3.0
    keep_alive: float = 30.0
    close: float = 5.0

    def __post_init__(self) -> None:
        for name in ("connect", "request", "keep_alive", "close"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"timeouts: {name} must be more than 0 seconds, not {getattr(self, name)}")
