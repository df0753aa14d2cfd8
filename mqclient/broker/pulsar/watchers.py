"""Who is told of topics that come and go.

| command | answer |
|---|---|
| WATCH_TOPIC_LIST | WATCH_TOPIC_LIST_SUCCESS, with the names if the hash is another, later updates; NotAllowedError |
| WATCH_TOPIC_LIST_CLOSE | SUCCESS |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mqclient.broker.pulsar.lookup import plain_pattern, topics_hash
from mqclient.broker.pulsar.refused import Refused
from mqclient.pulsar.codes import ServerError

if TYPE_CHECKING:
    from mqclient.broker.pulsar.session import Session
    from mqclient.broker.pulsar.topics import Topic


class Watcher:
    """One client's interest in the persistent topics of a namespace."""

    __slots__ = ("_id", "_matches", "_namespace", "_session")

    def __init__(self, session: Session, watcher_id: int, namespace: str, matches: Callable[[str], bool]) -> None:
        self._session = session
        self._id = watcher_id
        self._namespace = namespace
        self._matches = matches

    def names(self) -> list[str]:
        """All that it is about."""
        wanted = self._session.topics.in_namespace(self._namespace, lambda topic: topic.name.persistent)
        return [name for name in wanted if self._matches(name)]

    def tell(self, topic: Topic, there: bool) -> None:
        """A topic came or went; nothing is said of others."""
        name = topic.name
        if f"{name.tenant}/{name.namespace}" != self._namespace or not name.persistent or not self._matches(topic.text):
            return
        self._session.send(
            66,
            "CommandWatchTopicUpdate",
            watcher_id=self._id,
            new_topics=[topic.text] if there else [],
            deleted_topics=[] if there else [topic.text],
            topics_hash=topics_hash(self._session, self.names()),
        )


def on_watch(session: Session, request: Any) -> None:
    matches = plain_pattern(request.topics_pattern)
    if matches is None:
        text = f"Unable to create topic list watcher: the pattern {request.topics_pattern[:80]!r} is too long or costly"
        raise Refused(ServerError.NotAllowedError, text)
    watcher = Watcher(session, request.watcher_id, request.namespace, matches)
    session.watchers[request.watcher_id] = watcher
    names = watcher.names()
    told = topics_hash(session, names)
    session.send(
        65,
        "CommandWatchTopicListSuccess",
        request_id=request.request_id,
        watcher_id=request.watcher_id,
        topic=names if told != request.topics_hash else [],
        topics_hash=told,
    )


def on_close(session: Session, request: Any) -> None:
    session.watchers.pop(request.watcher_id, None)
    session.success(request.request_id)


HANDLERS = {64: on_watch, 67: on_close}
