"""TLS under both drivers: trust, names, large frames, closing."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqclient.config import TLS
from mqclient.core.driver import Address
from mqclient.errors import ConfigError, LinkError
from mqclient.io.aio import AsyncioDriver
from mqclient.io.threads import ThreadsDriver
from mqclient.io.tls import Encrypted, encrypted
from tests.support.certificates import Certificates, make
from tests.support.echo import EchoEngine, EchoServer

BODIES = [b"small", b"L" * 3_000_000, b"", b"M" * 70_000]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def server(certificates: Certificates) -> Iterator[EchoServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.certificate, certificates.key)
    with EchoServer(tls=context) as it:
        yield it


def by_threads(address: Address, bodies: list[bytes]) -> list[bytes]:
    driver = ThreadsDriver("test")
    try:
        engine = EchoEngine(driver, address)
        slots = [engine.submit(body, 20) for body in bodies]
        replies = [driver.wait(slot, driver.deadline(20)) for slot in slots]
        again = [driver.wait(engine.submit(body, 20), driver.deadline(20)) for body in bodies]
        assert again == replies
        engine.close()
        return replies
    finally:
        driver.close()


def by_asyncio(address: Address, bodies: list[bytes]) -> list[bytes]:
    async def main() -> list[bytes]:
        driver = AsyncioDriver("test")
        try:
            engine = EchoEngine(driver, address)
            slots = [engine.submit(body, 20) for body in bodies]
            replies = [await driver.wait(slot, driver.deadline(20)) for slot in slots]
            engine.close()
            return replies
        finally:
            await driver.close()

    return asyncio.run(main())


BOTH = pytest.mark.parametrize("ask", [by_threads, by_asyncio], ids=["threads", "asyncio"])


@BOTH
def test_a_trusted_server(ask: object, server: EchoServer, certificates: Certificates) -> None:
    tls = encrypted(TLS(trust=certificates.authority))
    assert callable(ask)
    assert ask(server.address._replace(tls=tls), BODIES) == BODIES


@BOTH
def test_an_unknown_authority_is_refused_with_the_reason(ask: object, server: EchoServer) -> None:
    assert callable(ask)
    with pytest.raises(LinkError, match="CERTIFICATE_VERIFY_FAILED"):
        ask(server.address._replace(tls=encrypted(TLS())), [b"secret"])
    assert server.received == []


@BOTH
def test_a_wrong_name_is_refused_and_another_name_may_be_given(
    ask: object, server: EchoServer, certificates: Certificates
) -> None:
    assert callable(ask)
    wrong = encrypted(TLS(trust=certificates.authority, server_name="elsewhere"))
    with pytest.raises(LinkError, match=r"(?i)mismatch"):
        ask(server.address._replace(tls=wrong), [b"secret"])
    right = encrypted(TLS(trust=certificates.authority, server_name="localhost"))
    assert ask(server.address._replace(tls=right), [b"x"]) == [b"x"]
    careless = encrypted(TLS(trust=certificates.authority, server_name="elsewhere", check_host_name=False))
    assert ask(server.address._replace(tls=careless), [b"x"]) == [b"x"]


@BOTH
def test_no_verification_only_if_asked_for(ask: object, server: EchoServer) -> None:
    assert callable(ask)
    assert ask(server.address._replace(tls=encrypted(TLS(insecure_trust_anyone=True))), [b"x"]) == [b"x"]


@BOTH
def test_a_server_that_does_not_speak_tls(ask: object, certificates: Certificates) -> None:
    assert callable(ask)
    with EchoServer() as plain, pytest.raises(LinkError):
        ask(plain.address._replace(tls=encrypted(TLS(trust=certificates.authority))), [b"secret"])
    assert plain.received == []


def test_old_versions_are_not_spoken() -> None:
    assert encrypted(TLS()).context.minimum_version == ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize(
    "options", [{"trust": "missing.pem"}, {"certificate": "missing.pem"}, {"trust": __file__}], ids=str
)
def test_options_that_cannot_be_used_are_config_errors(options: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="TLS options"):
        encrypted(TLS(**options))  # type: ignore[arg-type]


def test_a_context_is_shared_by_the_addresses_of_a_client() -> None:
    tls = encrypted(TLS())
    assert isinstance(tls, Encrypted)
    assert Address("a", 1, tls=tls).tls is Address("b", 2, tls=tls).tls
