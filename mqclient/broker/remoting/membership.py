"""Owns who is there: heartbeats with subscription versions, members of groups, notices of changes.

| code | request | answered |
|---|---|---|
| 34 | HEART_BEAT | registers producers, consumers and their subscriptions |
| 35 | UNREGISTER_CLIENT | removes this connection from its groups |
| 38 | GET_CONSUMER_LIST_BY_GROUP | one id per connection: equal ids stand there twice |
| 46 | CHECK_CLIENT_CONFIG | whether a subscription's filter can be served |
| 203 | GET_CONSUMER_CONNECTION_LIST | who, from where, with which subscriptions |
| 40 | NOTIFY_CONSUMER_IDS_CHANGED | pushed to all members of a clustering group when one came or went |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mqclient.broker.remoting import filters
from mqclient.broker.remoting.server import VERSION, Ask, Handler, Peer, Refused, Reply
from mqclient.broker.remoting.state import HELP, Broker
from mqclient.rocketmq.codes import Request, Response
from mqclient.rocketmq.model import RETRY_PREFIX
from mqclient.rocketmq.remoting.bodies import read_body, write_body

EXPIRES: Final = 120.0
SCAN: Final = 10.0


def table(members: Members) -> Mapping[int, Handler]:
    return {
        Request.HEART_BEAT: members.heartbeat,
        Request.UNREGISTER_CLIENT: members.unregister,
        Request.GET_CONSUMER_LIST_BY_GROUP: members.ids,
        Request.CHECK_CLIENT_CONFIG: members.check,
        Request.GET_CONSUMER_CONNECTION_LIST: members.connections,
    }


@dataclass(slots=True)
class Member:
    """One connection in a group."""

    client_id: str
    peer: Peer
    seen: float


@dataclass(slots=True)
class ConsumerGroup:
    """The members of a consumer group and what they subscribed to; the last heartbeat decides how it consumes."""

    consume_type: str = "CONSUME_PASSIVELY"
    model: str = "CLUSTERING"
    consume_from: str = "CONSUME_FROM_LAST_OFFSET"
    members: dict[Peer, Member] = field(default_factory=dict)
    subscriptions: dict[str, dict[str, Any]] = field(default_factory=dict)

    def subscribe(self, subscriptions: list[dict[str, Any]]) -> bool:
        """Take over what is newer; a topic that came or went is a change, a newer version is not."""
        changed = False
        for subscription in subscriptions:
            topic = subscription["topic"]
            known = self.subscriptions.get(topic)
            if known is None or int(known["subVersion"]) < int(subscription["subVersion"]):
                changed |= known is None
                self.subscriptions[topic] = subscription
        gone = self.subscriptions.keys() - {subscription["topic"] for subscription in subscriptions}
        for topic in gone:
            del self.subscriptions[topic]
        return changed or bool(gone)


class Members:
    """The groups of one broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.consumers: dict[str, ConsumerGroup] = {}
        self.producers: dict[str, dict[Peer, Member]] = {}
        broker.on_lost.append(self._lost)

    def start(self) -> None:
        """Look for silent members, as often as upstream does."""
        self._broker.house.clock.after(SCAN, self._expire)

    def heartbeat(self, ask: Ask) -> Reply:
        beat = read_body(ask.body)
        client_id = str(beat["clientID"])
        now = self._broker.house.clock.mono()
        for entry in beat.get("consumerDataSet", ()):
            self._register(str(entry["groupName"]), entry, Member(client_id, ask.peer, now))
        for entry in beat.get("producerDataSet", ()):
            self.producers.setdefault(str(entry["groupName"]), {})[ask.peer] = Member(client_id, ask.peer, now)
        return Reply(fields={"IS_SUB_CHANGE": "true", "IS_SUPPORT_HEART_BEAT_V2": "true"})

    def unregister(self, ask: Ask) -> Reply:
        producer, consumer = ask.text("producerGroup", ""), ask.text("consumerGroup", "")
        if producer:
            self._forget(self.producers, producer, ask.peer)
        if consumer:
            self._leave(consumer, ask.peer)
        return Reply()

    def ids(self, ask: Ask) -> Reply:
        group = self.consumers.get(ask.text("consumerGroup"))
        if group is None:
            raise Refused(Response.SYSTEM_ERROR, f"no consumer for this group, {ask.text('consumerGroup')}")
        return Reply(body=write_body({"consumerIdList": [member.client_id for member in group.members.values()]}))

    def check(self, ask: Ask) -> Reply:
        data = read_body(ask.body).get("subscriptionData") or {}
        filters.check(self._broker, data.get("expressionType") or filters.TAG, str(data.get("subString") or ""))
        return Reply()

    def connections(self, ask: Ask) -> Reply:
        name = ask.text("consumerGroup")
        group = self.consumers.get(name)
        if group is None:
            raise Refused(Response.CONSUMER_NOT_ONLINE, f"the consumer group[{name}] not online")
        body = {
            "connectionSet": [
                {
                    "clientAddr": member.peer.address,
                    "clientId": member.client_id,
                    "language": member.peer.language,
                    "version": member.peer.version,
                }
                for member in group.members.values()
            ],
            "consumeFromWhere": group.consume_from,
            "consumeType": group.consume_type,
            "messageModel": group.model,
            "subscriptionTable": group.subscriptions,
        }
        return Reply(body=write_body(body))

    def member(self, group: str, client_id: str) -> Member | None:
        """The member with this id; of two with an equal id the first."""
        members = self.consumers[group].members.values() if group in self.consumers else ()
        return next((member for member in members if member.client_id == client_id), None)

    def producer(self, client_id: str) -> Peer | None:
        """The connection of a client that beats as a producer."""
        members = (member for group in self.producers.values() for member in group.values())
        return next((member.peer for member in members if member.client_id == client_id), None)

    def check_version(self, group_name: str, topic: str, version: int) -> dict[str, Any]:
        """The subscription of a pull that brought none: 24 if it is not known, 25 if the pull's is newer."""
        group = self.consumers.get(group_name)
        if group is None:
            raise Refused(Response.SUBSCRIPTION_NOT_EXIST, f"the consumer's group info not exist\n{HELP}")
        subscription = group.subscriptions.get(topic)
        if subscription is None:
            raise Refused(Response.SUBSCRIPTION_NOT_EXIST, f"the consumer's subscription not exist\n{HELP}")
        if int(subscription["subVersion"]) < version:
            raise Refused(Response.SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest")
        return subscription

    def _register(self, name: str, entry: dict[str, Any], member: Member) -> None:
        config = self._broker.group(name)
        self._broker.make_topic(RETRY_PREFIX + name, config.retry_queues)
        group = self.consumers.setdefault(name, ConsumerGroup())
        group.consume_type = entry.get("consumeType", group.consume_type)
        group.model = entry.get("messageModel", group.model)
        group.consume_from = entry.get("consumeFromWhere", group.consume_from)
        known = group.members.get(member.peer)
        group.members[member.peer] = member
        changed = group.subscribe(list(entry.get("subscriptionDataSet", ())))
        if changed or known is None or known.client_id != member.client_id:
            self._notify(name)

    def _notify(self, name: str) -> None:
        group = self.consumers.get(name)
        if group is None or group.model == "BROADCASTING" or not self._broker.group(name).notify_changes:
            return
        for peer in group.members:
            peer.push(Request.NOTIFY_CONSUMER_IDS_CHANGED, {"consumerGroup": name})

    def _leave(self, name: str, peer: Peer, notify: bool = True) -> None:
        group = self.consumers.get(name)
        if group is None or group.members.pop(peer, None) is None:
            return
        if notify:
            self._notify(name)
        if not group.members:
            del self.consumers[name]

    def _lost(self, peer: Peer) -> None:
        for name in list(self.consumers):
            self._leave(name, peer)
        for name in list(self.producers):
            self._forget(self.producers, name, peer)

    def _forget(self, groups: dict[str, dict[Peer, Member]], name: str, peer: Peer) -> None:
        members = groups.get(name)
        if members is not None:
            members.pop(peer, None)
            if not members:
                del groups[name]

    def _expire(self) -> None:
        """Silent members go without a notice, as upstream has it; their connections are closed."""
        old = self._broker.house.clock.mono() - EXPIRES
        for name, group in list(self.consumers.items()):
            for member in [member for member in group.members.values() if member.seen < old]:
                self._leave(name, member.peer, notify=False)
                member.peer.close()
        self.start()


__all__ = ["VERSION", "ConsumerGroup", "Member", "Members", "table"]
