"""Owns what is said to RocketMQ brokers to compare them: one script a family of requests."""

from __future__ import annotations

from typing import Any

from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.remoting.bodies import write_body
from tests.differential.remoting import Script, heartbeat, message_fields, short_fields
from tests.unit.broker.remoting.raw import Raw, pull_fields

FAR = 4_000_000_000_000
KEYED = "TAGS\x01a\x02KEYS\x01k1 k2\x02color\x01red\x02"


def sends(script: Script) -> None:
    """Every form of sending, and what is refused."""
    raw = script.connect()
    topic = script.topic(raw, "sent", 2)
    script.ask("version 1", raw, Request.SEND_MESSAGE, b"one", **message_fields(topic, 0, KEYED))
    script.ask("version 2", raw, Request.SEND_MESSAGE_V2, b"two", **short_fields(topic, 0, KEYED))
    unique = "UNIQ_KEY\x01AC11000200002A9F0000000000000001\x02WAIT\x01true\x02"
    script.ask("with an id", raw, Request.SEND_MESSAGE_V2, b"three", **short_fields(topic, 1, unique))
    script.ask("without properties", raw, Request.SEND_MESSAGE_V2, b"four", **short_fields(topic, 1))
    batch = raw.codec.BatchBuilder()
    for body in (b"b1", b"b2"):
        batch.add(body, b"TAGS\x01a\x02")
    script.ask("batch", raw, Request.SEND_BATCH_MESSAGE, batch.seal(), **short_fields(topic, 0, unique, batch="true"))
    raw.tell(Request.SEND_MESSAGE_V2, b"one way", oneway=True, **short_fields(topic, 0))
    script.ask("compressed", raw, Request.SEND_MESSAGE_V2, b"not really", **short_fields(topic, 0, sysFlag=1))
    script.indexed(raw, topic, 6, 2)
    script.ask("max after all", raw, Request.GET_MAX_OFFSET, topic=topic, queueId=0)
    script.pull("what queue 0 holds", raw, script.called("g"), topic, 0)
    script.pull("what queue 1 holds", raw, script.called("g"), topic, 0, 1)
    script.ask("any queue", raw, Request.SEND_MESSAGE_V2, b"x", **short_fields(script.topic(raw, "single", 1), -1))
    script.ask("no such queue", raw, Request.SEND_MESSAGE_V2, b"x", **short_fields(topic, 99))
    script.ask("bad topic", raw, Request.SEND_MESSAGE_V2, b"x", **short_fields("bad topic!", 0))
    long = "t" * 128
    script.ask("long topic", raw, Request.SEND_MESSAGE_V2, b"x", **short_fields(long, 0))
    script.ask("too big", raw, Request.SEND_MESSAGE_V2, bytes(5 << 20), **short_fields(topic, 0))
    fresh = script.called("fresh")
    script.ask("a topic is made", raw, Request.SEND_MESSAGE_V2, b"x", **short_fields(fresh, 0))
    nowhere = short_fields(script.called("nowhere"), 0, defaultTopic="NoSuchTemplate")
    script.ask("no template", raw, Request.SEND_MESSAGE_V2, b"x", **nowhere)
    script.ask("read only", raw, Request.SEND_MESSAGE_V2, b"x", **short_fields(_read_only(script, raw), 0))
    script.ask("delayed", raw, Request.SEND_MESSAGE_V2, b"x", **short_fields(topic, 0, "DELAY\x013\x02"))
    timer = "TIMER_DELAY_SEC\x0160\x02"
    script.ask("timed", raw, Request.SEND_MESSAGE_V2, b"x", **short_fields(topic, 0, timer))
    script.ask("reserved topic", raw, Request.SEND_MESSAGE_V2, b"x", **short_fields("SCHEDULE_TOPIC_XXXX", 0))


def _read_only(script: Script, raw: Raw) -> str:
    topic = script.called("readonly")
    fields: dict[str, Any] = {
        "topic": topic,
        "defaultTopic": "TBW102",
        "readQueueNums": 1,
        "writeQueueNums": 1,
        "perm": 4,
    }
    raw.ask(Request.UPDATE_AND_CREATE_TOPIC, topicFilterType="SINGLE_TAG", topicSysFlag=0, order="false", **fields)
    return topic


def pulls(script: Script) -> None:
    """Found, none, illegal offsets; filters; long polling."""
    raw, group = script.connect(), script.called("pullers")
    topic = script.topic(raw, "pulled", 4)
    for number in range(4):
        properties = f"TAGS\x01{'ab'[number % 2]}\x02n\x01{number}\x02"
        raw.ask(Request.SEND_MESSAGE_V2, b"m%d" % number, **short_fields(topic, 0, properties))
    script.indexed(raw, topic, 4)
    for step, offset in (("found", 0), ("found later", 3), ("at the end", 4), ("beyond", 9), ("negative", -1)):
        script.pull(step, raw, group, topic, offset)
    script.pull("two at most", raw, group, topic, 0, maxMsgNums=2)
    script.pull("empty queue", raw, group, topic, 0, 1)
    script.pull("beyond an empty queue", raw, group, topic, 7, 1)
    script.pull("one tag", raw, group, topic, 0, subscription="a")
    script.pull("two tags", raw, group, topic, 0, subscription="a || b")
    script.pull("no such tag", raw, group, topic, 0, subscription="zzz")
    script.pull("by sql", raw, group, topic, 0, subscription="n > 1", expressionType="SQL92")
    script.pull("by bad sql", raw, group, topic, 0, subscription="n >", expressionType="SQL92")
    script.pull("no such queue", raw, group, topic, 0, 99)
    script.pull("no such topic", raw, group, script.called("nothing"), 0)
    script.pull("no member", raw, group, topic, 0, sysFlag=0)
    script.pull("held until its time", raw, group, topic, 4, sysFlag=6, suspendTimeoutMillis=100)
    opaque = raw.tell(Request.PULL_MESSAGE, **pull_fields(group, topic, 4, sysFlag=6, suspendTimeoutMillis=15000))
    script.connect().ask(Request.SEND_MESSAGE_V2, b"wakes", **short_fields(topic, 0))
    script.note("woken", raw.answer(opaque, 20))
    script.ask("beat", raw, Request.HEART_BEAT, heartbeat("c@1", group, {topic: 1}))
    script.pull("commits along", raw, group, topic, 1, sysFlag=5, commitOffset=1)
    script.ask("is committed", raw, Request.QUERY_CONSUMER_OFFSET, consumerGroup=group, topic=topic, queueId=0)


def offsets(script: Script) -> None:
    """All questions about offsets."""
    raw, group = script.connect(), script.called("readers")
    topic, other = script.topic(raw, "measured", 2), script.called("unknown")
    for _ in range(3):
        raw.ask(Request.SEND_MESSAGE_V2, b"x", **short_fields(topic, 0))
    script.indexed(raw, topic, 3)
    for where, place in (
        ("full", (topic, 0)),
        ("empty", (topic, 1)),
        ("no such queue", (topic, 77)),
        ("no topic", (other, 0)),
    ):
        at: dict[str, Any] = {"topic": place[0], "queueId": place[1]}
        script.ask(f"max, {where}", raw, Request.GET_MAX_OFFSET, **at)
        script.ask(f"min, {where}", raw, Request.GET_MIN_OFFSET, **at)
        script.ask(f"earliest, {where}", raw, Request.GET_EARLIEST_MSG_STORETIME, **at)
        script.ask(f"by time 0, {where}", raw, Request.SEARCH_OFFSET_BY_TIMESTAMP, timestamp=0, **at)
        script.ask(f"by time to come, {where}", raw, Request.SEARCH_OFFSET_BY_TIMESTAMP, timestamp=FAR, **at)
        upper: dict[str, Any] = at | {"boundaryType": "UPPER"}
        script.ask(f"by upper time 0, {where}", raw, Request.SEARCH_OFFSET_BY_TIMESTAMP, timestamp=0, **upper)
        script.ask(f"by upper time to come, {where}", raw, Request.SEARCH_OFFSET_BY_TIMESTAMP, timestamp=FAR, **upper)
        mine: dict[str, Any] = at | {"consumerGroup": group}
        script.ask(f"query, {where}", raw, Request.QUERY_CONSUMER_OFFSET, **mine)
        script.ask(f"query, no zero, {where}", raw, Request.QUERY_CONSUMER_OFFSET, setZeroIfNotFound="false", **mine)
        script.ask(f"update, unknown group, {where}", raw, Request.UPDATE_CONSUMER_OFFSET, commitOffset=1, **mine)
    raw.ask(Request.HEART_BEAT, heartbeat("o@1", group, {topic: 1}))
    for step, queue, offset in (("update", 0, 2), ("update back", 0, 1), ("update empty", 1, 5), ("update 77", 77, 3)):
        mine = {"consumerGroup": group, "topic": topic, "queueId": queue}
        script.ask(step, raw, Request.UPDATE_CONSUMER_OFFSET, commitOffset=offset, **mine)
        script.ask(f"query after {step}", raw, Request.QUERY_CONSUMER_OFFSET, **mine)
    mine = {"consumerGroup": group, "topic": other, "queueId": 0}
    script.ask("update, no topic", raw, Request.UPDATE_CONSUMER_OFFSET, commitOffset=1, **mine)


def code_25(script: Script) -> None:
    """Pull versions newer, equal, older, and none registered (observed, part 1)."""
    raw, group = script.connect(), script.called("versions")
    topic = script.topic(raw, "versioned", 1)
    raw.ask(Request.SEND_MESSAGE_V2, b"x", **short_fields(topic, 0))
    script.indexed(raw, topic, 1)

    def pull(step: str, version: int, flag: int = 0) -> None:
        script.pull(step, raw, group, topic, 0, sysFlag=flag, subVersion=version)

    pull("none registered", 100)
    script.ask("beat 100", raw, Request.HEART_BEAT, heartbeat("v@1", group, {topic: 100}))
    for step, version in (("equal", 100), ("newer", 101), ("older", 99), ("zero", 0)):
        pull(step, version)
    pull("newer with its subscription", 101, 4)
    script.ask("beat 101", raw, Request.HEART_BEAT, heartbeat("v@1", group, {topic: 101}))
    pull("newer, now told", 101)
    script.ask("beat 90", raw, Request.HEART_BEAT, heartbeat("v@1", group, {topic: 90}))
    pull("an older beat is ignored", 101)
    script.ask("beat without the topic", raw, Request.HEART_BEAT, heartbeat("v@1", group, {"TBW102": 1}))
    pull("not subscribed any more", 101)


def equal_ids(script: Script) -> None:
    """Two members with one id (observed, part 3)."""
    one, two, group = script.connect(), script.connect(), script.called("twins")
    topic = script.topic(one, "shared", 4)
    for raw in (one, two):
        raw.ask(Request.HEART_BEAT, heartbeat("same@1", group, {topic: 1}))
    script.ask("the list names it twice", one, Request.GET_CONSUMER_LIST_BY_GROUP, consumerGroup=group)
    locked = _locks(group, "same@1", topic, [0, 1])
    script.ask("one locks", one, Request.LOCK_BATCH_MQ, locked)
    script.ask("two locks the same", two, Request.LOCK_BATCH_MQ, locked)
    script.ask("one leaves", one, Request.UNREGISTER_CLIENT, clientID="same@1", consumerGroup=group)
    script.ask("the list names it once", two, Request.GET_CONSUMER_LIST_BY_GROUP, consumerGroup=group)


def membership(script: Script) -> None:
    """Who is there, and who is told of it."""
    one, two, group = script.connect(), script.connect(), script.called("team")
    topic = script.topic(one, "followed", 2)
    notice = Request.NOTIFY_CONSUMER_IDS_CHANGED
    script.ask("nobody is listed", one, Request.GET_CONSUMER_LIST_BY_GROUP, consumerGroup=group)
    script.ask("nobody is connected", one, Request.GET_CONSUMER_CONNECTION_LIST, consumerGroup=group)
    script.ask("one comes", one, Request.HEART_BEAT, heartbeat("one@1", group, {topic: 1}))
    script.note("one hears of itself", one.pushed(notice))
    script.ask("the same again", one, Request.HEART_BEAT, heartbeat("one@1", group, {topic: 1}))
    script.silence("no news, no notice", one, notice)
    script.ask("a newer version", one, Request.HEART_BEAT, heartbeat("one@1", group, {topic: 2}))
    script.silence("a version is no change", one, notice)
    script.ask("two comes", two, Request.HEART_BEAT, heartbeat("two@1", group, {topic: 2}))
    script.note("one hears of two", one.pushed(notice))
    script.ask("connections", one, Request.GET_CONSUMER_CONNECTION_LIST, consumerGroup=group)
    script.ask("who consumes", one, Request.QUERY_TOPIC_CONSUME_BY_WHO, topic=topic)
    script.ask("two leaves", two, Request.UNREGISTER_CLIENT, clientID="two@1", consumerGroup=group)
    script.note("one hears of it", one.pushed(notice))
    script.ask("one is listed", one, Request.GET_CONSUMER_LIST_BY_GROUP, consumerGroup=group)
    loud = script.called("loud")
    script.ask("broadcasting", two, Request.HEART_BEAT, heartbeat("two@1", loud, {topic: 1}, "BROADCASTING"))
    script.silence("broadcasting is quiet", two, notice)
    info: dict[str, Any] = {"consumerGroup": group, "clientId": "one@1", "jstackEnable": "false", "extra": "kept"}
    opaque = two.tell(Request.GET_CONSUMER_RUNNING_INFO, b'{"a":1}', **info)
    asked = script.note("relayed", one.pushed(Request.GET_CONSUMER_RUNNING_INFO))
    one.respond(asked, 7, b'{"b":2}', note="mine")
    script.note("relayed back", two.answer(opaque))
    script.ask("relay to nobody", two, Request.GET_CONSUMER_RUNNING_INFO, **(info | {"clientId": "no@1"}))


def locks(script: Script) -> None:
    """Queue locks: granted, refused, given back."""
    one, two, group = script.connect(), script.connect(), script.called("orderly")
    topic = script.topic(one, "ordered", 4)
    for raw, name in ((one, "one@1"), (two, "two@1")):
        raw.ask(Request.HEART_BEAT, heartbeat(name, group, {topic: 1}))
    script.ask("one locks", one, Request.LOCK_BATCH_MQ, _locks(group, "one@1", topic, [0, 1]))
    script.ask("two gets the rest", two, Request.LOCK_BATCH_MQ, _locks(group, "two@1", topic, [1, 2]))
    script.ask("one again", one, Request.LOCK_BATCH_MQ, _locks(group, "one@1", topic, [0, 1]))
    script.ask("two may not unlock", two, Request.UNLOCK_BATCH_MQ, _locks(group, "two@1", topic, [0]))
    script.ask("still held", two, Request.LOCK_BATCH_MQ, _locks(group, "two@1", topic, [0]))
    script.ask("one unlocks", one, Request.UNLOCK_BATCH_MQ, _locks(group, "one@1", topic, [0, 1]))
    script.ask("now two", two, Request.LOCK_BATCH_MQ, _locks(group, "two@1", topic, [0, 1]))
    script.ask("no queues", two, Request.LOCK_BATCH_MQ, _locks(group, "two@1", topic, []))


def _locks(group: str, client_id: str, topic: str, queues: list[int]) -> bytes:
    wanted = [{"topic": topic, "brokerName": "broker-a", "queueId": queue} for queue in queues]
    return write_body({"clientId": client_id, "consumerGroup": group, "mqSet": wanted, "onlyThisBroker": False})


def server_side_reset(script: Script) -> None:
    """Today's form: a note for whoever pulls next (observed, part 2)."""
    raw, group = script.connect(), script.called("moved")
    topic = _filled(script, raw, group)
    reset: dict[str, Any] = {"topic": topic, "group": group, "timestamp": 0, "isForce": "true", "queueId": -1}
    script.ask("no topic", raw, Request.INVOKE_BROKER_TO_RESET_OFFSET, **(reset | {"topic": script.called("no")}))
    script.ask("no group", raw, Request.INVOKE_BROKER_TO_RESET_OFFSET, **(reset | {"group": script.called("no")}))
    script.ask("to the beginning", raw, Request.INVOKE_BROKER_TO_RESET_OFFSET, **reset)
    script.silence("nobody is told", raw, Request.RESET_CONSUMER_CLIENT_OFFSET)
    mine: dict[str, Any] = {"consumerGroup": group, "topic": topic, "queueId": 0}
    script.ask("query before a pull", raw, Request.QUERY_CONSUMER_OFFSET, **mine)
    script.ask("update before a pull", raw, Request.UPDATE_CONSUMER_OFFSET, commitOffset=4, **mine)
    script.pull("first pull", raw, group, topic, 3, sysFlag=0, subVersion=1)
    script.pull("second pull", raw, group, topic, 3, sysFlag=0, subVersion=1)
    script.ask("update after", raw, Request.UPDATE_CONSUMER_OFFSET, commitOffset=4, **mine)
    one: dict[str, Any] = reset | {"queueId": 1, "offset": 2}
    script.ask("one queue to an offset", raw, Request.INVOKE_BROKER_TO_RESET_OFFSET, **one)
    script.ask("query that queue", raw, Request.QUERY_CONSUMER_OFFSET, **(mine | {"queueId": 1}))
    script.ask("out of range", raw, Request.INVOKE_BROKER_TO_RESET_OFFSET, **(one | {"offset": 99}))
    script.ask("to the end", raw, Request.INVOKE_BROKER_TO_RESET_OFFSET, **(reset | {"timestamp": -1}))


def pushed_reset(script: Script) -> None:
    """The old form: stored offsets are needed, members are told."""
    raw, group = script.connect(), script.called("pushed")
    topic = _filled(script, raw, group)
    reset: dict[str, Any] = {"topic": topic, "group": group, "timestamp": 0, "isForce": "true"}
    script.ask("clustering without offsets", raw, Request.INVOKE_BROKER_TO_RESET_OFFSET, **reset)
    for queue in range(2):
        mine: dict[str, Any] = {"consumerGroup": group, "topic": topic, "queueId": queue}
        raw.ask(Request.UPDATE_CONSUMER_OFFSET, commitOffset=3, **mine)
    script.ask("clustering", raw, Request.INVOKE_BROKER_TO_RESET_OFFSET, **reset)
    script.note("the member is told", raw.pushed(Request.RESET_CONSUMER_CLIENT_OFFSET))
    soft: dict[str, Any] = reset | {"isForce": "false", "timestamp": FAR}
    script.ask("only backwards unless forced", raw, Request.INVOKE_BROKER_TO_RESET_OFFSET, **soft)
    script.note("told so", raw.pushed(Request.RESET_CONSUMER_CLIENT_OFFSET))
    script.ask("nobody there", raw, Request.INVOKE_BROKER_TO_RESET_OFFSET, **(reset | {"group": script.called("no")}))


def broadcasting_reset(script: Script) -> None:
    """The old form for a broadcasting group: refused, or with the operator's changes obeyed."""
    one, two, group = script.connect(), script.connect(), script.called("loud")
    topic = _filled(script, one, group, "BROADCASTING")
    two.ask(Request.HEART_BEAT, heartbeat("two@1", group, {topic: 1}, "BROADCASTING"))
    reset: dict[str, Any] = {"topic": topic, "group": group, "isForce": "false"}
    answer = script.ask("reset", one, Request.INVOKE_BROKER_TO_RESET_OFFSET, timestamp=0, **reset)
    if answer.code:
        script.silence("nobody is told", one, Request.RESET_CONSUMER_CLIENT_OFFSET)
        return
    for name, raw in (("one", one), ("two", two)):
        script.note(f"{name} is told", raw.pushed(Request.RESET_CONSUMER_CLIENT_OFFSET))
    script.ask("to the end", one, Request.INVOKE_BROKER_TO_RESET_OFFSET, timestamp=-1, **reset)


def _filled(script: Script, raw: Raw, group: str, model: str = "CLUSTERING") -> str:
    """Two queues with four messages each, and a member."""
    topic = script.topic(raw, "reset", 2)
    for queue in range(2):
        for _ in range(4):
            raw.ask(Request.SEND_MESSAGE_V2, b"x", **short_fields(topic, queue))
    script.indexed(raw, topic, 4, 4)
    raw.ask(Request.HEART_BEAT, heartbeat("one@1", group, {topic: 1}, model))
    return topic


def administration(script: Script) -> None:
    """Routes, topics, groups, statistics."""
    raw, names, group = script.connect(), script.names(), script.called("admins")
    topic = _filled(script, raw, group)
    raw.ask(Request.UPDATE_CONSUMER_OFFSET, consumerGroup=group, topic=topic, queueId=0, commitOffset=3)
    script.ask("no route", names, Request.GET_ROUTEINFO_BY_TOPIC, topic=script.called("nowhere"))
    script.ask("topic statistics", raw, Request.GET_TOPIC_STATS_INFO, topic=topic)
    script.ask("consumption", raw, Request.GET_CONSUME_STATS, consumerGroup=group, topic=topic)
    span: dict[str, Any] = {"topic": topic, "group": group}
    script.ask("time span", raw, Request.QUERY_CONSUME_TIME_SPAN, **span)
    script.ask("time span of no topic", raw, Request.QUERY_CONSUME_TIME_SPAN, topic=script.called("no"), group=group)
    script.ask("correction", raw, Request.QUERY_CORRECTION_OFFSET, topic=topic, compareGroup=group)
    script.ask(
        "correction of nobody", raw, Request.QUERY_CORRECTION_OFFSET, topic=topic, compareGroup=script.called("no")
    )
    piece: dict[str, Any] = {"topic": topic, "queueId": 0, "index": 1, "count": 2}
    script.ask("index", raw, Request.QUERY_CONSUME_QUEUE, **piece)
    script.ask("index of no queue", raw, Request.QUERY_CONSUME_QUEUE, **(piece | {"queueId": 77}))
    script.ask("topic", raw, Request.GET_TOPIC_CONFIG, topic=topic)
    script.ask("group", raw, Request.GET_SUBSCRIPTIONGROUP_CONFIG, group=group)
    script.ask("no such topic", raw, Request.GET_TOPIC_CONFIG, topic=script.called("nowhere"))
    script.ask("statistics of no topic", raw, Request.GET_TOPIC_STATS_INFO, topic=script.called("nowhere"))
    script.ask("unknown request", raw, 9999)
    script.ask("unknown request to the name server", names, 9999)
    script.ask("delete", raw, Request.DELETE_TOPIC_IN_BROKER, topic=topic)
    script.ask("delete again", raw, Request.DELETE_TOPIC_IN_BROKER, topic=topic)
    script.pull("pull what was deleted", raw, group, topic, 0)
    script.ask("delete a group", raw, Request.DELETE_SUBSCRIPTIONGROUP, groupName=group)
