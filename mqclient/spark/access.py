"""Owns how Spark's processes reach brokers: options of addresses, credentials and encryption, and clients by them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from mqclient import pulsar, rocketmq
from mqclient.config import TLS
from mqclient.errors import ConfigError, DeadlineError, LinkError
from mqclient.spark.clients import CLIENTS
from mqclient.spark.options import NAME_SERVER, SERVICE_URL, Option, Secret, Values

SECRETS: Final = ("token", "secretKey", "securityToken", "password", "tlsKeyPassword")
"""Each may be given itself, or as the …File or …Env where the task finds it."""


def secret_options(*names: str) -> tuple[Option, ...]:
    return tuple(Option(name + kind) for name in names for kind in ("", "File", "Env"))


ENCRYPTION: Final = (
    Option("tlsTrustFile"),
    Option("tlsCertificateFile"),
    Option("tlsKeyFile"),
    Option("tlsServerName"),
    Option("tlsCheckHostName", default="true"),
    *secret_options("tlsKeyPassword"),
)
ROCKETMQ_ACCESS: Final = (
    NAME_SERVER,
    Option("accessKey"),
    *secret_options("secretKey", "securityToken"),
    Option("namespace"),
    Option("tls", default="false"),
    *ENCRYPTION,
)
PULSAR_ACCESS: Final = (
    SERVICE_URL,
    *secret_options("token"),
    Option("user"),
    *secret_options("password"),
    Option("oauth2IssuerUrl"),
    Option("oauth2PrivateKeyFile"),
    Option("oauth2Audience"),
    Option("oauth2Scope"),
    *ENCRYPTION,
)


@dataclass(frozen=True)
class Access:
    """Who we are and where to: one client of each process belongs to it. Secrets are looked up where it is made."""

    address: str
    given: tuple[tuple[str, str], ...] = ()
    secrets: tuple[tuple[str, Secret], ...] = ()

    def reveal(self, name: str) -> str | None:
        secret = dict(self.secrets).get(name)
        return None if secret is None else secret.reveal(name)

    def encryption(self) -> TLS | None:
        """What the options say about TLS, None if nothing."""
        given = dict(self.given)
        named = {"trust": "tlsTrustFile", "certificate": "tlsCertificateFile", "key": "tlsKeyFile"}
        chosen: dict[str, Any] = {name: given[option] for name, option in named.items() if option in given}
        if "tlsServerName" in given:
            chosen["server_name"] = given["tlsServerName"]
        if given.get("tlsCheckHostName") == "false":
            chosen["check_host_name"] = False
        password = self.reveal("tlsKeyPassword")
        if password is not None:
            chosen["key_password"] = password
        return TLS(**chosen) if chosen or given.get("tls") == "true" else None


def access(values: Values, table: tuple[Option, ...]) -> Access:
    """What the user gave, checked as far as it can be without looking a secret up."""
    names = [option.name for option in table[1:] if not option.name.startswith(SECRETS)]
    given = {name: text for name in names if (text := values.get(name)) is not None}
    address = values.address(table)
    found = {name: secret for name in SECRETS if (secret := values.secret(name)) is not None}
    for flag in ("tls", "tlsCheckHostName"):
        if flag in given:
            given[flag] = str(values.flag(flag)).lower()
    for one, other in (("accessKey", "secretKey"), ("user", "password")):
        if (one in given) != (other in found):
            raise ConfigError(
                f"options {one} and {other} go together; {other}File or {other}Env will do for the second."
            )
    ways = [name for name in ("user", "oauth2IssuerUrl") if name in given] + [
        name for name in ("token",) if name in found
    ]
    if len(ways) > 1:
        raise ConfigError(f"options {' and '.join(sorted(ways))}: one way to say who we are is enough.")
    return Access(address, tuple(sorted(given.items())), tuple(sorted(found.items())))


@contextmanager
def reaching(option: Option, access: Access) -> Iterator[None]:
    """On the driver: brokers that are not reached are told with the option that says where they are, and without the
    way through the client, for Spark shows it all."""
    try:
        yield
    except (LinkError, DeadlineError) as error:
        raise type(error)(f"option {option.name}={access.address!r}: {error}") from None


def rocketmq_client(access: Access) -> AbstractContextManager[rocketmq.Client]:
    """This process' client of these name servers."""
    return CLIENTS.borrow(("rocketmq", access), lambda: _rocketmq(access))


def pulsar_client(access: Access) -> AbstractContextManager[pulsar.Client]:
    """This process' client of this service."""
    return CLIENTS.borrow(("pulsar", access), lambda: _pulsar(access))


def _rocketmq(access: Access) -> rocketmq.Client:
    given, secret = dict(access.given), access.reveal("secretKey")
    auth = None if secret is None else rocketmq.acl(given["accessKey"], secret, access.reveal("securityToken"))
    return rocketmq.Client(access.address, auth=auth, tls=access.encryption(), namespace=given.get("namespace"))


def _pulsar(access: Access) -> pulsar.Client:
    return pulsar.Client(access.address, auth=_authentication(access, dict(access.given)), tls=access.encryption())


def _authentication(access: Access, given: Mapping[str, str]) -> Any:
    token, password, encryption = access.reveal("token"), access.reveal("password"), access.encryption()
    if token is not None:
        return pulsar.token(token)
    if password is not None:
        return pulsar.basic(given["user"], password)
    if "oauth2IssuerUrl" in given:
        return pulsar.oauth2(
            given["oauth2IssuerUrl"],
            private_key=given.get("oauth2PrivateKeyFile"),
            audience=given.get("oauth2Audience"),
            scope=given.get("oauth2Scope"),
        )
    return None if encryption is None or encryption.certificate is None else pulsar.mutual_tls()
