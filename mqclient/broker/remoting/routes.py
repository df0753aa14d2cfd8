"""Owns the name server's requests: routes, the cluster's brokers, the list of topics.

| code | request | answered |
|---|---|---|
| 100, 101, 102 | PUT_KV_CONFIG, GET_KV_CONFIG, DELETE_KV_CONFIG | a value by namespace and key |
| 219 | GET_KVLIST_BY_NAMESPACE | all of a namespace |
| 216 | DELETE_TOPIC_IN_NAMESRV | nothing to forget: the brokers say what there is |
| 205, 327 | WIPE_WRITE_PERM_OF_BROKER, ADD_WRITE_PERM_OF_BROKER | a broker may not, or may, be sent to |
| 224, 304 | GET_TOPICS_BY_CLUSTER, GET_SYSTEM_TOPIC_LIST_FROM_NS | a cluster's topics; names that are taken |
| 311 | GET_UNIT_TOPIC_LIST | topics by their unit flags |
| 312, 313 | GET_HAS_UNIT_SUB_TOPIC_LIST, GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST | the same |
| 318, 319 | UPDATE_NAMESRV_CONFIG, GET_NAMESRV_CONFIG | options as properties text |
| 901 | GET_BROKER_MEMBER_GROUP | a broker's one member |
| 105 | GET_ROUTEINFO_BY_TOPIC | the brokers that have the topic, with their queues |
| 106 | GET_BROKER_CLUSTER_INFO | all brokers |
| 206 | GET_ALL_TOPIC_LIST_FROM_NAMESERVER | all topics |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mqclient.broker.remoting.server import Ask, Handler, Refused, Reply, read_properties, write_properties
from mqclient.broker.remoting.state import CLUSTER_NAME, HELP, WRITE, Cluster
from mqclient.rocketmq.codes import Request, Response
from mqclient.rocketmq.remoting.bodies import write_body

UNIT = 1
UNIT_SUB = 2
BLACK_LIST = frozenset({"configBlackList", "configStorePath", "kvConfigPath", "rocketmqHome"})
OPTIONS = {"enableAllTopicList": "true", "enableTopicList": "true", "orderMessageEnable": "false"}
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
        Request.WIPE_WRITE_PERM_OF_BROKER: lambda ask: routes.permit(ask, "wipeTopicCount", False),
        Request.ADD_WRITE_PERM_OF_BROKER: lambda ask: routes.permit(ask, "addTopicCount", True),
        Request.GET_TOPICS_BY_CLUSTER: routes.cluster_topics,
        Request.GET_SYSTEM_TOPIC_LIST_FROM_NS: routes.taken_names,
        Request.GET_UNIT_TOPIC_LIST: lambda ask: routes.flagged(lambda flag: flag & UNIT),
        Request.GET_HAS_UNIT_SUB_TOPIC_LIST: lambda ask: routes.flagged(lambda flag: flag & UNIT_SUB),
        Request.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: lambda ask: routes.flagged(
            lambda flag: flag & UNIT_SUB and not flag & UNIT
        ),
        Request.UPDATE_NAMESRV_CONFIG: routes.update_config,
        Request.GET_NAMESRV_CONFIG: routes.config,
        Request.GET_BROKER_MEMBER_GROUP: routes.member_group,
    }


class Routes:
    """What a name server answers; it looks at the brokers instead of being told by them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._values: dict[str, dict[str, str]] = {}
        self._wiped: set[str] = set()
        """Brokers that routes show without the right to write."""
        self._config = dict(OPTIONS)

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

    def permit(self, ask: Ask, counted: str, write: bool) -> Reply:
        name = ask.text("brokerName")
        found = [broker for broker in self._cluster.brokers if broker.name == name]
        if found:
            (self._wiped.discard if write else self._wiped.add)(name)
        return Reply(fields={counted: str(sum(len(broker.topics) for broker in found))})

    def cluster_topics(self, ask: Ask) -> Reply:
        return self.topics(ask) if ask.text("cluster") == CLUSTER_NAME else Reply(body=write_body({"topicList": []}))

    def taken_names(self, ask: Ask) -> Reply:
        brokers = self._cluster.brokers
        names = [CLUSTER_NAME, *(broker.name for broker in brokers)]
        return Reply(body=write_body({"brokerAddr": brokers[0].address, "topicList": names}))

    def flagged(self, wanted: Callable[[int], int | bool]) -> Reply:
        topics = (topic for broker in self._cluster.brokers for topic in broker.topics.values())
        return Reply(body=write_body({"topicList": sorted({topic.name for topic in topics if wanted(topic.sys_flag)})}))

    def update_config(self, ask: Ask) -> Reply:
        changes = read_properties(ask.body)
        if BLACK_LIST & changes.keys():
            raise Refused(Response.NO_PERMISSION, "Can not update config in black list.")
        self._config.update(changes)
        return Reply()

    def config(self, ask: Ask) -> Reply:
        return Reply(body=write_properties(self._config))

    def member_group(self, ask: Ask) -> Reply:
        name = ask.text("brokerName")
        addresses = [broker.address for broker in self._cluster.brokers if broker.name == name]
        group = {"brokerAddrs": dict(enumerate(addresses)), "brokerName": name, "cluster": ask.text("clusterName")}
        return Reply(remark="not set any response code", body=write_body({"brokerMemberGroup": group}))

    def _queue_data(self, broker: str, topic: Any) -> dict[str, Any]:
        return {
            "brokerName": broker,
            "perm": topic.perm & ~WRITE if broker in self._wiped else topic.perm,
            "readQueueNums": topic.read_queues,
            "topicSysFlag": topic.sys_flag,
            "writeQueueNums": topic.write_queues,
        }
