"""Owns what becomes of messages that a handler failed on: back to the broker, until it has them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from mqclient.core.steps import Steps
from mqclient.errors import MQError
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.remoting import requests
from mqclient.rocketmq.remoting.process_queue import ProcessQueue

LOG = logging.getLogger("mqclient.remoting")

SEND_BACK_TIMEOUT: Final = 5.0
RETRY_DELAY: Final = 5.0
DEAD: Final = -1
"""The delay level that means: no more attempts."""

Level = Callable[[int], int]
"""By the number of earlier attempts: the delay level of the next; 0: the broker chooses (10 s, 30 s, 1 min, …)."""


class SendBack:
    """Gives messages back to the broker, which delivers them again or puts them among the dead letters."""

    def __init__(self, member: Any, max_attempts: int) -> None:
        self._member = member
        self._client = member.client
        self._max_attempts = max_attempts

    def steps(self, process_queue: ProcessQueue, message: Any, level: int) -> Steps[bool]:
        """Until the broker has it; False if the queue was given up before."""
        queue = process_queue.queue
        group = self._member.group
        fields = requests.send_back(group, message, level, self._max_attempts, queue.broker_name)
        while not process_queue.dropped:
            try:
                address = self._client.broker_address(queue.broker_name)
                yield from self._client.ask_steps(
                    address, Request.CONSUMER_SEND_MSG_BACK, fields, timeout=SEND_BACK_TIMEOUT
                )
            except MQError as error:
                self._member.folds.warn(("send back", queue), f"could not send a message back to {queue}: {error}")
                yield self._client.timers.sleep(RETRY_DELAY)
            else:
                return True
        return False
