"""Being attached: one attempt at a time, again after every loss, an end where the broker says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqclient.core.steps import Steps
from mqclient.errors import ClosedError, DeadlineError, LinkError, MQError, ProtocolError
from mqclient.pulsar.attachment import Attachment
from mqclient.pulsar.client import ClientEngine
from mqclient.pulsar.codes import BrokerError, ServerError
from mqclient.pulsar.connection import Connection
from mqclient.pulsar.names import TopicName
from tests.support.fake_driver import Script
from tests.support.pulsar_world import PulsarWorld


class Guest:
    """Opens as the test says."""

    def __init__(self, client: ClientEngine) -> None:
        self.client = client
        self.opened: list[int] = []
        self.errors: list[MQError] = []
        self.failed: MQError | None = None
        self.during: Callable[[Connection], None] = lambda connection: None
        self.attachment = Attachment(client, TopicName.parse("t"), self, "guest")

    def open_steps(self, connection: Connection, deadline: float) -> Steps[None]:
        self.opened.append(self.attachment.epoch)
        self.during(connection)
        yield self.client.timers.sleep(0.01)
        if self.errors:
            raise self.errors.pop(0)

    def on_failed(self, error: MQError) -> None:
        self.failed = error

    def lose(self) -> None:
        connection = self.attachment.connection
        assert connection is not None
        with self.client.driver.enter():
            self.attachment.on_lost(connection)

    def move(self, url: str | None) -> None:
        connection = self.attachment.connection
        assert connection is not None
        with self.client.driver.enter():
            self.attachment.on_closed_by_broker(connection, url)


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


@pytest.fixture
def guest(world: PulsarWorld) -> Guest:
    return Guest(world.client())


def start(world: PulsarWorld, guest: Guest, timeout: float = 30.0) -> None:
    deadline = world.world.mono + timeout
    world.do(guest.client, lambda: guest.attachment.start(deadline))


def test_errors_that_pass_are_tried_again(world: PulsarWorld, guest: Guest) -> None:
    guest.errors = [LinkError("no"), BrokerError(ServerError.ServiceNotReady, "wait")]
    start(world, guest)
    assert guest.opened == [1, 2, 3]
    assert guest.attachment.attached
    assert world.ask(guest.client, guest.attachment.when_attached).done


def test_errors_that_stay_end_the_first_opening(world: PulsarWorld, guest: Guest) -> None:
    guest.errors = [BrokerError(ServerError.ConsumerBusy, "taken")]
    with pytest.raises(BrokerError, match="taken"):
        start(world, guest)


def test_the_first_opening_has_a_deadline(world: PulsarWorld, guest: Guest) -> None:
    guest.errors = [LinkError("no")] * 1000
    with pytest.raises(LinkError):
        start(world, guest, 5)
    assert world.world.mono < 1006
    assert len(guest.opened) < 10  # it waits longer each time


def test_later_openings_go_on_for_ever(world: PulsarWorld, guest: Guest) -> None:
    start(world, guest)
    guest.errors = [LinkError("no")] * 20
    guest.lose()
    guest.attachment.on_lost(world_connection(guest))  # told twice: one attempt
    world.world.advance(3600)
    assert guest.attachment.attached
    assert guest.opened == list(range(1, 23))


def test_a_topic_on_its_way_is_asked_for_every_second(world: PulsarWorld, guest: Guest) -> None:
    start(world, guest)
    guest.errors = [BrokerError(ServerError.ServiceNotReady, "topic is fenced")] * 20
    guest.lose()
    world.world.advance(21)
    assert guest.attachment.attached


def test_a_success_undone_at_once_begins_a_new_wait(world: PulsarWorld, guest: Guest) -> None:
    start(world, guest)
    left = 30

    def close_again(connection: Connection) -> None:
        nonlocal left
        left -= 1
        if left:
            guest.attachment.on_closed_by_broker(connection, None)

    guest.during = close_again
    guest.lose()
    world.world.advance(5)
    assert (guest.attachment.attached, left) == (True, 0)


def test_later_openings_wait_until_the_former_one_is_forgotten(world: PulsarWorld, guest: Guest) -> None:
    start(world, guest)
    passing = (ServerError.ConsumerBusy, ServerError.ProducerBusy, ServerError.AuthenticationError)
    guest.errors = [*(BrokerError(code, "still there") for code in passing), ProtocolError("bad bytes")]
    guest.lose()
    world.world.advance(30)
    assert guest.attachment.attached
    assert guest.opened == [1, 2, 3, 4, 5, 6]


def world_connection(guest: Guest) -> Connection:
    [connection] = guest.client._pool.values()
    return connection


def test_a_refusal_for_good_ends_it(world: PulsarWorld, guest: Guest) -> None:
    start(world, guest)
    guest.errors = [BrokerError(ServerError.TopicTerminatedError, "gone")]
    guest.lose()
    slot = world.ask(guest.client, guest.attachment.when_attached)
    world.world.advance(10)
    assert isinstance(guest.failed, BrokerError)
    assert isinstance(slot.error, BrokerError)
    assert isinstance(world.ask(guest.client, guest.attachment.when_attached).error, ClosedError)


def test_a_move_goes_straight_to_the_broker_named(world: PulsarWorld, guest: Guest) -> None:
    start(world, guest)
    before = world.control.count("LOOKUP")
    guest.move("pulsar://broker:6650")
    world.world.advance(0.05)
    assert guest.attachment.attached
    assert world.control.count("LOOKUP") == before
    guest.move(None)
    world.world.advance(5)
    assert world.control.count("LOOKUP") == before + 1


def test_a_move_behind_a_proxy_goes_through_it(
    world: PulsarWorld, guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker named is of the inside: straight there is no way."""
    asked: list[Any] = []
    plain = guest.client.connection_steps

    def connection_steps(address: Any, proxy_to: str | None, *rest: Any) -> Any:
        asked.append((address.host, proxy_to))
        return plain(address, proxy_to, *rest)

    start(world, guest)
    monkeypatch.setattr(guest.client, "connection_steps", connection_steps)
    monkeypatch.setattr(guest.attachment.connection, "_proxy_to", "inside-1:6650")
    guest.attachment._proxy = guest.attachment.connection.proxy  # type: ignore[union-attr]
    guest.move("pulsar://inside-2:6650")
    world.world.advance(0.05)
    assert asked == [("broker", "inside-2:6650")]
    assert guest.attachment.attached


def test_a_broker_named_in_vain_is_forgotten(world: PulsarWorld, guest: Guest) -> None:
    start(world, guest)
    guest.move("pulsar://nowhere:1")
    world.world.advance(30)
    assert guest.attachment.attached


def test_closed_by_the_broker_while_opening_is_no_success(world: PulsarWorld, guest: Guest) -> None:
    def close_once(connection: Connection) -> None:
        guest.during = lambda connection: None
        guest.attachment.on_closed_by_broker(connection, None)

    guest.during = close_once
    start(world, guest)
    assert guest.opened == [1, 2]


def test_closing_while_opening(world: PulsarWorld, guest: Guest) -> None:
    guest.errors = [LinkError("no")] * 1000
    deadline = world.world.mono + 30
    slot = world.ask(guest.client, lambda: guest.attachment.start(deadline))
    waiting = world.ask(guest.client, guest.attachment.when_attached)
    world.world.advance(0.5)
    with guest.client.driver.enter():
        guest.attachment.close(ClosedError("enough"))
    world.world.advance(5)
    assert isinstance(slot.error, ClosedError)
    assert isinstance(waiting.error, ClosedError)


def test_an_event_of_another_connection_is_nothing(world: PulsarWorld, guest: Guest) -> None:
    start(world, guest)
    world.world.listen(("other", 1), Script())
    other: Any = object()
    with guest.client.driver.enter():
        guest.attachment.on_lost(other)
        guest.attachment.on_closed_by_broker(other, None)
    assert guest.attachment.attached
    assert not isinstance(guest.failed, DeadlineError)
