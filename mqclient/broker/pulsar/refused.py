"""Owns the one exception by which a command is refused."""

from __future__ import annotations

from mqclient.pulsar.codes import ServerError


class Refused(Exception):
    """The command is answered by ERROR with this code."""

    def __init__(self, code: ServerError, text: str) -> None:
        super().__init__(text)
        self.code = code
