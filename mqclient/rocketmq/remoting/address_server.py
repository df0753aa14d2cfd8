"""Owns the HTTP address server: a web page with the list of name servers, read at the start and again and again."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from mqclient.core.driver import Address
from mqclient.core.link import Buffer, Link
from mqclient.core.slot import Slot
from mqclient.core.steps import Steps
from mqclient.errors import ConfigError, LinkError, MQError, ProtocolError
from mqclient.rocketmq.remoting.nameserver import parse_address

LOG = logging.getLogger("mqclient.remoting")

FIRST: Final = 10.0
EVERY: Final = 120.0
MAX_PAGE: Final = 64 * 1024


class Page:
    """One answer: its status and its text."""

    def __init__(self, status: int, text: str) -> None:
        self.status = status
        self.text = text


class PageReader:
    """Reads one HTTP/1.0 answer; complete by its length, or when the other side closes."""

    def __init__(self) -> None:
        self.error: ProtocolError | None = None
        self.last_borrow = 0.0
        self._data = bytearray()

    def feed(self, data: Buffer) -> list[Page]:
        self._data += data
        if len(self._data) > MAX_PAGE:
            self.error = ProtocolError(f"more than {MAX_PAGE} bytes: that is no list of name servers")
        elif self._data and not b"HTTP/1.".startswith(self._data[:7]):
            self.error = ProtocolError("the answer is no HTTP")
        else:
            length = self._length()
            if length is not None and len(self._body) >= length:
                return [self.page(length)]
        return []

    @property
    def _body(self) -> bytes:
        return bytes(self._data.partition(b"\r\n\r\n")[2])

    def _length(self) -> int | None:
        head, end, _ = self._data.partition(b"\r\n\r\n")
        for line in head.split(b"\r\n")[1:] if end else []:
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length" and value.strip().isdigit():
                return int(value)
        return None

    def page(self, length: int | None = None) -> Page:
        """What has come; ProtocolError if that is no answer."""
        words = self._data.split(b" ", 2)
        if len(words) < 3 or not words[1].isdigit() or b"\r\n\r\n" not in self._data:
            raise ProtocolError("the answer is no HTTP")
        return Page(int(words[1]), self._body[:length].decode("utf-8", "replace"))


class AddressServer:
    """One page. A failure leaves what is known; an error tells the page's address and what to do."""

    def __init__(self, client: Any, url: str, unit: str | None) -> None:
        parts = urlsplit(url if "//" in url else f"http://{url}")
        if parts.scheme != "http" or not parts.hostname:
            raise ConfigError(f"address_server={url!r}: an address as http://host:port/rocketmq/nsaddr is wanted")
        self._client = client
        self._path = (parts.path or "/rocketmq/nsaddr") + (f"-{unit}?nofix=1" if unit else "")
        self._address = Address(parts.hostname, parts.port or 80, "address server")
        self._host = parts.netloc
        self.url = f"http://{self._host}{self._path}"
        self._waiting: Slot[Page] | None = None

    def fetch_steps(self) -> Steps[list[str]]:
        """The addresses on the page."""
        page: Slot[Page] = Slot()
        self._waiting = page
        link = Link(self._client.driver, self._client.timers, self, self._address, PageReader)
        deadline = self._client.driver.now.mono + self._client.options.connect_timeout
        link.connect(deadline)
        head = f"GET {self._path} HTTP/1.0\r\nHost: {self._host}\r\nConnection: close\r\n\r\n"
        link.write(head.encode())
        timer = self._client.timers.at(deadline, lambda _: page.fail(LinkError("no answer in time")))
        try:
            found: Page = yield page
        except MQError as error:
            raise LinkError(f"the address server {self.url} did not tell the name servers: {error}") from error
        finally:
            timer.cancel()
            link.close()
        addresses = [parse_address(text) for text in found.text.strip().split(";") if text.strip()]
        if found.status != 200 or not addresses:
            raise LinkError(f"the address server {self.url} answered {found.status} and names no name server")
        return addresses

    # ---- told by the link

    def on_open(self, link: Link) -> None:
        """The request is in its outbox."""

    def on_frames(self, link: Link, frames: Sequence[Any]) -> None:
        if self._waiting is not None:
            self._waiting.complete(frames[0])

    def on_lost(self, link: Link, cause: MQError) -> None:
        """Without a length, the end of the connection is the end of the page."""
        if self._waiting is None:
            return
        reader: Any = link.reader
        try:
            self._waiting.complete(reader.page())
        except ProtocolError:
            self._waiting.fail(cause)
