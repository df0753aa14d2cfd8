"""What brokers hand on to members arrives as it was sent, and so does the answer (observed, part 6)."""

from __future__ import annotations

import threading
from typing import Any

from mqclient.broker import EmbeddedBroker
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.bodies import write_body
from tests.unit.broker.remoting.conftest import Connect
from tests.unit.broker.remoting.raw import Raw, body_of

INFO = Request.GET_CONSUMER_RUNNING_INFO


def test_extra_fields_and_body_go_there_and_the_answer_comes_back_untouched(connect: Connect) -> None:
    member, admin = connect(), connect()
    member.heartbeat("one@1", "team", {"TBW102": 1})
    fields: dict[str, Any] = {"consumerGroup": "team", "clientId": "one@1", "jstackEnable": "false", "mqResetId": "42"}
    opaque = admin.tell(INFO, b'{"a":1}', **fields)
    asked = member.pushed(INFO)
    assert (asked.fields, asked.body) == (fields, b'{"a":1}')
    member.respond(asked, 7, b"moved", note="mine")
    answer = admin.answer(opaque)
    assert (answer.code, answer.body, answer.fields) == (7, b"moved", {"note": "mine"})


def test_members_that_are_not_there_or_too_old(connect: Connect) -> None:
    member, admin = connect(), connect()
    nobody = admin.ask(INFO, consumerGroup="team", clientId="nobody@1")
    assert (nobody.code, nobody.remark) == (1, "The Consumer <team> <nobody@1> not online")
    member.heartbeat("old@1", "elders", {"TBW102": 1})
    member._socket.sendall(member.codec.encode_frame(30, 9000, fields={"topic": "TBW102", "queueId": "0"}, version=40))
    member.answer(9000)
    old = admin.ask(INFO, consumerGroup="elders", clientId="old@1")
    assert old.code == 1
    assert "too low" in old.remark


def test_a_member_that_does_not_answer(connect: Connect, broker: EmbeddedBroker) -> None:
    member, admin = connect(), connect()
    member.heartbeat("mute@1", "team", {"TBW102": 1})
    opaque = admin.tell(INFO, consumerGroup="team", clientId="mute@1")
    asked = member.pushed(INFO)
    broker.control.move_clock(11)
    assert admin.answer(opaque).code == 207
    member.respond(asked)  # too late, and no harm
    assert admin.ask(Request.GET_MAX_OFFSET, topic="TBW102", queueId=0).code == 0


def test_a_member_that_goes_while_asked(connect: Connect) -> None:
    member, admin = connect(), connect()
    member.heartbeat("leaver@1", "team", {"TBW102": 1})
    opaque = admin.tell(INFO, consumerGroup="team", clientId="leaver@1")
    member.pushed(INFO)
    member.close()
    assert admin.answer(opaque).code == 207


def test_the_status_of_all_members_together(connect: Connect) -> None:
    members, admin = [connect(), connect()], connect()
    for number, member in enumerate(members):
        member.heartbeat(f"m{number}@1", "statuses", {"TBW102": 1})

    def answer(member: Raw, offset: int) -> None:
        asked = member.pushed(Request.GET_CONSUMER_STATUS_FROM_CLIENT)
        table = {MessageQueue("TBW102", "broker-a", 0): offset}
        member.respond(asked, 0, write_body({"messageQueueTable": table}) if offset else b"no json")

    threads = [threading.Thread(target=answer, args=(member, offset)) for offset, member in enumerate(members)]
    for thread in threads:
        thread.start()
    body = body_of(admin.ask(Request.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, group="statuses", topic="TBW102"))
    for thread in threads:
        thread.join()
    assert body["consumerTable"]["m1@1"] == {MessageQueue("TBW102", "broker-a", 0): 1}
    assert body["consumerTable"]["m0@1"] == {}
    nobody = admin.ask(Request.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, group="nobody", topic="TBW102")
    assert nobody.code == 1


def test_a_message_is_brought_to_a_member_that_consumes_it_at_once(connect: Connect) -> None:
    member, admin = connect(), connect()
    member.heartbeat("eater@1", "eaters", {"food": 1})
    admin.create_topic("food", 1)
    offset_id = admin.send("food", b"taste").field("msgId")
    fields: dict[str, Any] = {"consumerGroup": "eaters", "clientId": "eater@1", "msgId": offset_id, "extra": "x"}
    opaque = admin.tell(Request.CONSUME_MESSAGE_DIRECTLY, **fields)
    asked = member.pushed(Request.CONSUME_MESSAGE_DIRECTLY)
    more = {"brokerName": "broker-a", "groupSysFlag": "0", "topicSysFlag": "0"}
    assert asked.fields == fields | more
    (message,) = member.codec.decode_messages(asked.body)
    assert (message.body, message.offset_id) == (b"taste", offset_id)
    member.respond(asked, 0, b'{"consumeResult":"CR_SUCCESS"}')
    answer = admin.answer(opaque)
    assert (answer.code, body_of(answer)) == (0, {"consumeResult": "CR_SUCCESS"})
    wrongs = ({"clientId": "nobody@1"}, {"msgId": "zz"}, {"msgId": "7F000001" + "0" * 8 + "7" * 16})
    for wrong in wrongs:
        assert admin.ask(Request.CONSUME_MESSAGE_DIRECTLY, **fields | wrong).code == 1
