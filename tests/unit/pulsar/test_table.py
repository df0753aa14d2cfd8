"""A table of a topic: complete when it opens, kept up to date, told of."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.errors import DeadlineError
from mqclient.pulsar import sync
from mqclient.pulsar.sync_table import TableView
from mqclient.pulsar.table import Table, open_table
from tests.support.pulsar_world import PulsarWorld


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def table(world: PulsarWorld, client: Any, topic: Any, **options: Any) -> TableView:
    made: Table = world.do(client, lambda: open_table(client, topic, options, None))
    return sync.TableView(client.driver, made)


def test_complete_when_it_opens_and_up_to_date(world: PulsarWorld) -> None:
    client = world.client()
    sender = world.sender(world.producer(client, "t"))
    sender.send_many([(b"1", "a"), (b"2", "b"), (b"3", "a"), b"no key", (b"x", "gone"), (None, "gone"), (b"", "b")])
    view = table(world, client, "t", receiver_queue=2)
    assert view.items() == [("a", b"3")]
    assert (view["a"], view.get("b"), view.get("b", 7), "a" in view, len(view), list(view)) == (
        b"3",
        None,
        7,
        True,
        1,
        ["a"],
    )
    assert view.message("a").key == "a"
    assert view.topic == "persistent://public/default/t"
    sender.send(b"4", key="c")
    world.world.run()
    assert view.keys() == ["a", "c"]
    world.cut()
    world.world.advance(5)
    sender.send(b"5", key="c")
    view.refresh(10)
    assert view["c"] == b"5"
    assert view.diagnose()["keys"] == 2
    view.close()
    with pytest.raises(KeyError):
        view["zzz"]


def test_listeners(world: PulsarWorld, caplog: pytest.LogCaptureFixture) -> None:
    client = world.client()
    sender = world.sender(world.producer(client, "t"))
    sender.send(b"1", key="a")
    view = table(world, client, "t")
    told: list[tuple[str, Any]] = []
    view.listen(lambda key, value: 1 / 0)
    view.listen(lambda *change: told.append(change), existing=True)
    sender.send_many([(b"2", "a"), (None, "a")])
    world.world.run()
    assert told == [("a", b"1"), ("a", b"2"), ("a", None)]
    sender.send_many([(b"3", "a"), (b"", "a")])  # an empty body takes the key away as a null value does
    world.world.run()
    assert told[3:] == [("a", b"3"), ("a", None)]
    assert "ZeroDivisionError" in caplog.text


def test_many_topics_and_an_empty_one(world: PulsarWorld) -> None:
    client = world.client()
    world.sender(world.producer(client, "a")).send(b"1", key="k")
    with table(world, client, ["a", "empty"]) as view:
        assert view.items() == [("k", b"1")]


def test_not_complete_in_time(world: PulsarWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    client = world.client()
    world.sender(world.producer(client, "t")).send(b"1", key="k")
    with monkeypatch.context() as patch:
        patch.setattr(Table, "apply", lambda self, message: None)
        with pytest.raises(DeadlineError, match="not complete in time"):
            table(world, client, "t")
    assert len(client._members) == 1  # the producer
    view = table(world, client, "t")
    with monkeypatch.context() as patch:
        patch.setattr(view._table, "_look", lambda: None)
        with pytest.raises(DeadlineError):
            view.refresh(1)
    view.refresh()
