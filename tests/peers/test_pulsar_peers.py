"""The Go client of Pulsar uses the embedded broker; what arrives is what was sent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mqclient.broker import EmbeddedBroker
from tests.peers import tools

pytestmark = [pytest.mark.ci, pytest.mark.timeout(900), pytest.mark.xdist_group("peers")]


@pytest.fixture(name="broker", scope="module")
def broker_fixture() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(doors=["pulsar"], impl="pure") as broker:
        yield broker


def test_the_go_client(broker: EmbeddedBroker) -> None:
    told = tools.scenarios([str(tools.go_program("pulsar")), broker.pulsar_url])
    fifty, five = [f"{number:03}" for number in range(50)], [f"{number:03}" for number in range(5)]
    assert told == {
        "exclusive": fifty,
        "failover": fifty,
        "shared": fifty,
        "key-shared": fifty,
        "redelivered": ["000/0", "000/1", "001/0", "001/1"],
        "sought": five * 3,
        "read": five,
        "compressed": ["lz4 true", "zlib true", "zstd true"],
    }
