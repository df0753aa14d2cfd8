"""Who is told of topics that come and go, as recorded in java_pattern_watch."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.pulsar.codes import ServerError
from tests.support.pulsar_world import PulsarWorld, RawClient

ASKED = {"namespace": "public/default", "topics_pattern": "persistent://public/default/v-java-pw-.*", "watcher_id": 7}


@pytest.fixture
def raw(codec: Any) -> RawClient:
    return RawClient(PulsarWorld(codec))


def test_watching(raw: RawClient) -> None:
    raw.produce([b"x"], topic="v-java-pw-1")
    told = raw.ask("WATCH_TOPIC_LIST", **ASKED)[1]
    assert (list(told.topic), told.topics_hash) == (["persistent://public/default/v-java-pw-1"], "ce6a8276")
    again = raw.ask("WATCH_TOPIC_LIST", topics_hash="ce6a8276", **ASKED)[1]
    assert (list(again.topic), again.watcher_id) == ([], 7)
    raw.ask("PRODUCER", topic="other", producer_id=1)
    assert [name for name, *_ in raw.events] == ["PRODUCER_SUCCESS"]
    raw.ask("PRODUCER", topic="v-java-pw-2", producer_id=2)
    update = dict(event for event in raw.events)["WATCH_TOPIC_UPDATE"]
    assert (update.watcher_id, list(update.new_topics)) == (7, ["persistent://public/default/v-java-pw-2"])
    assert (update.topics_hash, list(update.deleted_topics)) == ("79b3e33f", [])
    raw.events.clear()
    raw.world.rest("DELETE", "persistent/public/default/v-java-pw-2", force="true")
    update = dict(event for event in raw.events)["WATCH_TOPIC_UPDATE"]
    assert (list(update.deleted_topics), update.topics_hash) == (
        ["persistent://public/default/v-java-pw-2"],
        "ce6a8276",
    )


def test_not_any_more(raw: RawClient) -> None:
    raw.ask("WATCH_TOPIC_LIST", **ASKED)
    assert raw.ask("WATCH_TOPIC_LIST_CLOSE", watcher_id=7)[0] == "SUCCESS"
    assert raw.ask("WATCH_TOPIC_LIST_CLOSE", watcher_id=7)[0] == "SUCCESS"
    raw.ask("PRODUCER", topic="v-java-pw-2", producer_id=2)
    assert [name for name, *_ in raw.events] == ["PRODUCER_SUCCESS"]


def test_what_is_not_watched(raw: RawClient) -> None:
    refused = raw.ask("WATCH_TOPIC_LIST", **{**ASKED, "topics_pattern": "(a+)+"})[1]
    assert refused.error == ServerError.NotAllowedError
    raw.ask("WATCH_TOPIC_LIST", **{**ASKED, "topics_pattern": "public/default/.*"})
    raw.ask("PRODUCER", topic="non-persistent://public/default/x", producer_id=2)
    assert [name for name, *_ in raw.events] == ["PRODUCER_SUCCESS"]
