"""The page that lists name servers: read at the start, again every two minutes, and what is wrong with it is said."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.errors import ConfigError, LinkError, ProtocolError
from mqclient.rocketmq.model import Message
from mqclient.rocketmq.remoting.address_server import MAX_PAGE, AddressServer, PageReader
from mqclient.rocketmq.remoting.client import ClientEngine, Options
from tests.support.fake_driver import Script, Wire
from tests.unit.rocketmq.remoting.cluster import VirtualCluster

URL = "http://pages:8080/rocketmq/nsaddr"


class Site(Script):
    """A web server with one page."""

    def __init__(self, page: bytes, *, length: bool = True, status: bytes = b"200 OK") -> None:
        super().__init__(self._serve)
        self.page = page
        self._length = length
        self._status = status

    def _serve(self, wire: Wire, data: bytes) -> None:
        head = b"HTTP/1.1 " + self._status + b"\r\n"
        if self._length:
            head += b"Content-Length: %d\r\n" % len(self.page)
        wire.send(head + b"\r\n" + self.page)
        if not self._length:
            wire.lose()


class Client:
    """A client that knows nothing but the page."""

    def __init__(self, cluster: VirtualCluster, **options: Any) -> None:
        self.driver = cluster.world.driver()
        with self.driver.enter():
            chosen = Options(seed=1, address_server=URL, **options)
            self.engine = ClientEngine(self.driver, cluster.codec, "", chosen)

    def route(self, topic: str) -> Any:
        with self.driver.enter():
            slot = self.engine.routes.publish(topic)
        return self.driver.wait(slot)


@pytest.fixture(name="cluster")
def cluster_fixture(codec: Any) -> VirtualCluster:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 1)
    return cluster


@pytest.mark.parametrize("length", [True, False])
def test_the_list_is_read_before_the_first_request(cluster: VirtualCluster, length: bool) -> None:
    site = Site(b"names:9876\n", length=length)
    cluster.world.listen(("pages", 8080), site)
    client = Client(cluster)
    assert client.route("orders").topic == "orders"
    assert b"GET /rocketmq/nsaddr HTTP/1.0\r\nHost: pages:8080" in bytes(site.received)
    assert client.engine.name_servers.addresses == ["names:9876"]


def test_it_is_read_again_and_a_failure_leaves_what_is_known(
    cluster: VirtualCluster, caplog: pytest.LogCaptureFixture
) -> None:
    site = Site(b"names:9876")
    cluster.world.listen(("pages", 8080), site)
    client = Client(cluster, unit_name="unit-a")
    client.route("orders")
    assert b"/rocketmq/nsaddr-unit-a?nofix=1" in bytes(site.received)
    site.page = b"names:9876;others:9876"
    cluster.world.advance(15)
    assert sorted(client.engine.name_servers.addresses) == ["names:9876", "others:9876"]
    cluster.world.refuse(("pages", 8080))
    cluster.world.advance(130)
    assert len(client.engine.name_servers.addresses) == 2
    assert "did not tell the name servers" in caplog.text


def test_who_asks_at_once_waits_for_one_page(cluster: VirtualCluster) -> None:
    site = Site(b"names:9876")
    cluster.world.listen(("pages", 8080), site)
    client = Client(cluster)
    with client.driver.enter():
        slots = [client.engine.routes.publish(topic) for topic in ("orders", "fresh")]
    assert [client.driver.wait(slot).topic for slot in slots] == ["orders", "fresh"]
    assert len(site.wires) == 1


@pytest.mark.parametrize(
    ("site", "says"),
    [
        (Site(b"", status=b"404 Not Found"), "answered 404"),
        (Site(b" "), "names no name server"),
        (Script(lambda wire, data: wire.send(b"SSH-2.0-OpenSSH\r\n")), "no HTTP"),
        (Script(), "no answer in time"),
        (Script(lambda wire, data: wire.lose()), "did not tell"),
    ],
)
def test_what_is_wrong_is_said_with_the_address(cluster: VirtualCluster, site: Script, says: str) -> None:
    cluster.world.listen(("pages", 8080), site)
    with pytest.raises(LinkError, match=says) as caught:
        Client(cluster).route("orders")
    assert URL in str(caught.value)


def test_pages_have_a_limit_and_addresses_a_form(cluster: VirtualCluster) -> None:
    reader = PageReader()
    assert reader.feed(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * MAX_PAGE) == []
    assert isinstance(reader.error, ProtocolError)
    with pytest.raises(ProtocolError, match="no HTTP"):
        PageReader().page()
    for url in ("https://pages", "http:///"):
        with pytest.raises(ConfigError, match="is wanted"):
            AddressServer(cluster.client().engine, url, None)
    assert AddressServer(cluster.client().engine, "pages:80", None).url == "http://pages:80/rocketmq/nsaddr"


def test_senders_send_by_it(cluster: VirtualCluster) -> None:
    cluster.world.listen(("pages", 8080), Site(b"names:9876"))
    client = cluster.client(address_server=URL)
    assert client.produce(Message("orders", b"x"))[0].ok
