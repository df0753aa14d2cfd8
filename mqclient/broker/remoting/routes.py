"""Owns the name server's requests: routes, the cluster's brokers, the list of topics.

| code | request | answered |
|---|---|---|
| 100, 101, 102 | PUT, GET, DELETE_KV_CONFIG | a value by namespace and key |
| 219 | GET_KVLIST_BY_NAMESPACE | all of a namespace |
| 216 | DELETE_TOPIC_IN_NAMESRV | nothing to forget: the brokers say what there is |
| 105 | GET_ROUTEINFO_BY_TOPIC | the brokers that have the topic, with their queues |
| 106 | GET_BROKER_CLUSTER_INFO | all brokers |
| 206 | GET_ALL_TOPIC_LIST_FROM_NAMESERVER | all topics |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mqclient.broker.remoting.server import Ask, Handler, Refused, Reply
from mqclient.broker.remoting.state import CLUSTER_NAME, HELP, Cluster
from mqclient.rocketmq.codes import Request, Response
from mqclient.rocketmq.remoting.bodies import write_body

STANDARD_JSON = 401
"""Clients from this version on get the route with quoted keys."""


def table(cluster: Cluster) -> Mapping[int, Handler]:
    routes = Routes(cluster)
    return {
        Request.PUT_KV_CONFIG: routes.put,
        Request.GET_KV_CONFIG: routes.get,
        Request.DELETE_KV_CONFIG: routes.delete,
        Request.GET_KVLIST_BY_NAMESPACE: routes.all,
        Request.DELETE_TOPIC_IN_NAMESRV: lambda ask: Reply(),
        Request.GET_ROUTEINFO_BY_TOPIC: routes.route,
        Request.GET_BROKER_CLUSTER_INFO: routes.cluster_info,
        Request.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: routes.topics,
    }


class Routes:
    """What a name server answers; it looks at the brokers instead of being told by them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._values: dict[str, dict[str, str]] = {}

    def put(self, ask: Ask) -> Reply:
        self._values.setdefault(ask.text("namespace"), {})[ask.text("key")] = ask.text("value")
        return Reply()

    def get(self, ask: Ask) -> Reply:
        namespace, key = ask.text("namespace"), ask.text("key")
        value = self._values.get(namespace, {}).get(key)
        if value is None:
            remark = f"No config item, Namespace: {namespace} Key: {key}"
            raise Refused(Response.QUERY_NOT_FOUND, remark)
        return Reply(fields={"value": value})

    def delete(self, ask: Ask) -> Reply:
        self._values.get(ask.text("namespace"), {}).pop(ask.text("key"), None)
        return Reply()

    def all(self, ask: Ask) -> Reply:
        values = self._values.get(ask.text("namespace"))
        if values is None:
            remark = f"No config item, Namespace: {ask.text('namespace')}"
            raise Refused(Response.QUERY_NOT_FOUND, remark)
        return Reply(body=write_body({"table": values}))

    def route(self, ask: Ask) -> Reply:
        name = ask.text("topic")
        brokers = [broker for broker in self._cluster.brokers if name in broker.topics]
        if not brokers or (name == "TBW102" and not brokers[0].setting("autoCreateTopicEnable")):
            raise Refused(Response.TOPIC_NOT_EXIST, f"No topic route info in name server for the topic: {name}\n{HELP}")
        datas = [self._cluster.broker_data(broker) for broker in brokers]
        if ask.frame.version >= STANDARD_JSON or ask.flag("acceptStandardJsonOnly"):
            for data in datas:
                data["brokerAddrs"] = {str(key): address for key, address in data["brokerAddrs"].items()}
        body = {
            "brokerDatas": datas,
            "filterServerTable": {},
            "queueDatas": [self._queue_data(broker.name, broker.topics[name]) for broker in brokers],
        }
        return Reply(body=write_body(body))

    def cluster_info(self, ask: Ask) -> Reply:
        brokers = {broker.name: self._cluster.broker_data(broker) for broker in self._cluster.brokers}
        return Reply(body=write_body({"brokerAddrTable": brokers, "clusterAddrTable": {CLUSTER_NAME: sorted(brokers)}}))

    def topics(self, ask: Ask) -> Reply:
        names = sorted({name for broker in self._cluster.brokers for name in broker.topics})
        return Reply(body=write_body({"topicList": names}))

    @staticmethod
    def _queue_data(broker: str, topic: Any) -> dict[str, Any]:
        return {
            "brokerName": broker,
            "perm": topic.perm,
            "readQueueNums": topic.read_queues,
            "topicSysFlag": topic.sys_flag,
            "writeQueueNums": topic.write_queues,
        }
