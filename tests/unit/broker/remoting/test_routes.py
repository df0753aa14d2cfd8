"""What the name server tells: routes in both dialects, the cluster, the topics."""

from __future__ import annotations

from typing import Any

from mqclient.broker import EmbeddedBroker
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.remoting.bodies import write_body
from tests.unit.broker.remoting.raw import Raw, body_of

SETTINGS = {"brokers": 2}


def test_a_route_names_brokers_and_queues(raw: Raw, names: Raw, broker: EmbeddedBroker) -> None:
    raw.create_topic("orders", 3)  # on broker-a alone
    route = body_of(names.ask(Request.GET_ROUTEINFO_BY_TOPIC, topic="orders"))
    (data,) = route["brokerDatas"]
    assert (data["brokerName"], data["brokerAddrs"]) == ("broker-a", {"0": broker.addresses()["broker-a"]})
    (queues,) = route["queueDatas"]
    assert (queues["brokerName"], queues["readQueueNums"], queues["writeQueueNums"]) == ("broker-a", 3, 3)


def test_the_template_is_on_every_broker(names: Raw) -> None:
    route = body_of(names.ask(Request.GET_ROUTEINFO_BY_TOPIC, topic="TBW102"))
    assert [data["brokerName"] for data in route["brokerDatas"]] == ["broker-a", "broker-b"]
    assert {data["perm"] for data in route["queueDatas"]} == {7}


def test_old_clients_get_bare_numbers_as_keys(names: Raw) -> None:
    old = names.codec.encode_frame(105, 77, fields={"topic": "TBW102"}, version=399)
    names._socket.sendall(old)
    assert b"{0:" in names.answer(77).body
    strict = names.codec.encode_frame(
        105, 78, fields={"topic": "TBW102", "acceptStandardJsonOnly": "true"}, version=399
    )
    names._socket.sendall(strict)
    assert b'{"0":' in names.answer(78).body


def test_no_route(names: Raw) -> None:
    answer = names.ask(Request.GET_ROUTEINFO_BY_TOPIC, topic="nowhere")
    assert answer.code == 17
    assert answer.remark.startswith("No topic route info in name server for the topic: nowhere")


def test_the_cluster_and_its_topics(raw: Raw, names: Raw) -> None:
    raw.create_topic("listed")
    info = body_of(names.ask(Request.GET_BROKER_CLUSTER_INFO))
    assert info["clusterAddrTable"] == {"DefaultCluster": ["broker-a", "broker-b"]}
    assert set(info["brokerAddrTable"]) == {"broker-a", "broker-b"}
    assert "listed" in body_of(names.ask(Request.GET_ALL_TOPIC_LIST_FROM_NAMESERVER))["topicList"]


def test_values_by_namespace_and_key(names: Raw) -> None:
    key: dict[str, Any] = {"namespace": "ORDER_TOPIC_CONFIG", "key": "orders"}
    assert names.ask(Request.GET_KV_CONFIG, **key).code == 22
    assert names.ask(Request.GET_KVLIST_BY_NAMESPACE, namespace="ORDER_TOPIC_CONFIG").code == 22
    assert names.ask(Request.PUT_KV_CONFIG, **key, value="broker-a:4").code == 0
    assert names.ask(Request.GET_KV_CONFIG, **key).field("value") == "broker-a:4"
    listed = names.ask(Request.GET_KVLIST_BY_NAMESPACE, namespace="ORDER_TOPIC_CONFIG")
    assert body_of(listed) == {"table": {"orders": "broker-a:4"}}
    assert names.ask(Request.DELETE_KV_CONFIG, **key).code == 0
    assert names.ask(Request.GET_KV_CONFIG, **key).code == 22


def test_a_broker_is_closed_to_senders_and_opened_again(raw: Raw, names: Raw) -> None:
    raw.create_topic("wiped")

    def perm() -> int:
        route = body_of(names.ask(Request.GET_ROUTEINFO_BY_TOPIC, topic="wiped", acceptStandardJsonOnly="true"))
        return int(route["queueDatas"][0]["perm"])

    wiped = names.ask(Request.WIPE_WRITE_PERM_OF_BROKER, brokerName="broker-a")
    assert (int(wiped.field("wipeTopicCount")) > 1, perm()) == (True, 4)
    assert names.ask(Request.ADD_WRITE_PERM_OF_BROKER, brokerName="broker-a").field("addTopicCount")
    assert perm() == 6
    assert names.ask(Request.WIPE_WRITE_PERM_OF_BROKER, brokerName="nobody").field("wipeTopicCount") == "0"
    assert perm() == 6


def test_lists_of_topics(raw: Raw, names: Raw) -> None:
    flags = {"unit": 1, "unit-sub": 2, "both": 3}
    configs = [{"topicName": name, "topicSysFlag": flag} for name, flag in flags.items()]
    raw.ask(Request.UPDATE_AND_CREATE_TOPIC_LIST, write_body({"topicConfigList": configs}))

    def topics(request: Request, **fields: Any) -> Any:
        return body_of(names.ask(request, **fields))["topicList"]

    assert topics(Request.GET_UNIT_TOPIC_LIST) == ["both", "unit"]
    assert topics(Request.GET_HAS_UNIT_SUB_TOPIC_LIST) == ["both", "unit-sub"]
    assert topics(Request.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST) == ["unit-sub"]
    assert "unit" in topics(Request.GET_TOPICS_BY_CLUSTER, cluster="DefaultCluster")
    assert topics(Request.GET_TOPICS_BY_CLUSTER, cluster="Other") == []
    assert topics(Request.GET_SYSTEM_TOPIC_LIST_FROM_NS) == ["DefaultCluster", "broker-a", "broker-b"]


def test_options_and_members_of_the_name_server(names: Raw, broker: EmbeddedBroker) -> None:
    assert names.ask(Request.UPDATE_NAMESRV_CONFIG, b"orderMessageEnable=true\n").code == 0
    assert b"orderMessageEnable=true\n" in names.ask(Request.GET_NAMESRV_CONFIG).body
    assert names.ask(Request.UPDATE_NAMESRV_CONFIG, b"kvConfigPath=/\n").code == 16
    asked = names.ask(Request.GET_BROKER_MEMBER_GROUP, clusterName="DefaultCluster", brokerName="broker-a")
    assert body_of(asked)["brokerMemberGroup"]["brokerAddrs"] == {"0": broker.addresses()["broker-a"]}
