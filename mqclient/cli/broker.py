"""Owns `mqclient broker`: an embedded broker as a process of its own, and a table of what goes on in it."""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from mqclient.broker import EmbeddedBroker
from mqclient.broker import __main__ as standalone
from mqclient.broker.overview import GroupRow, TopicRow

DRAWN = 0.5
"""Seconds between two pictures of the table."""
TOLD = 5.0
"""Seconds between two looks where lines are told instead."""
COLUMNS = ("topic", "messages", "in/s", "kept", "group", "members", "out/s", "behind", "permits")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    standalone.add_arguments(parser)
    parser.add_argument("--quiet", action="store_true", help="addresses only, no table")


def run(options: argparse.Namespace) -> int:
    """Print the addresses, show what goes on until Ctrl-C or SIGTERM."""
    return standalone.serve(options, None if options.quiet else watch)


def watch(broker: EmbeddedBroker, stop: threading.Event) -> None:
    """A table on a terminal with rich (extra `cli`), else a line for each topic and group that moved."""
    if sys.stdout.isatty():
        try:
            from rich.live import Live
        except ImportError:
            pass
        else:
            show(broker, stop, Live)
            return
    tell(broker, stop)


def show(broker: EmbeddedBroker, stop: threading.Event, live: Callable[..., Any]) -> None:
    """Draw the table anew until it is time to stop."""
    speeds = Speeds()
    with live(table(broker.overview(), speeds), auto_refresh=False, transient=True) as screen:
        while not stop.wait(DRAWN):
            screen.update(table(broker.overview(), speeds), refresh=True)


def tell(broker: EmbeddedBroker, stop: threading.Event, seconds: float = TOLD) -> None:
    """One line for each row that is not what it was at the last look."""
    speeds, before = Speeds(), set[tuple[str, ...]]()
    while not stop.wait(seconds):
        rows = list(lines(broker.overview(), speeds))
        for row in rows:
            if row not in before:
                print("  ".join(f"{name}={text}" for name, text in zip(COLUMNS, row, strict=True) if text), flush=True)
        before = set(rows)


class Speeds:
    """How fast counters grow: per second, since they were looked at before."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._before: dict[tuple[str, ...], tuple[float, int]] = {}

    def __call__(self, key: tuple[str, ...], value: int) -> float:
        now = self._clock()
        when, old = self._before.get(key, (now, value))
        self._before[key] = now, value
        return max(0, value - old) / (now - when) if now > when else 0.0


def lines(topics: list[TopicRow], speeds: Speeds) -> Iterator[tuple[str, ...]]:
    """What stands in the columns: for each topic, and for each of its groups."""
    for topic in topics:
        name = f"{topic.protocol}:{topic.name}"
        speed = speeds((name,), topic.messages)
        yield (name, f"{topic.messages:,}", f"{speed:,.0f}", size(topic.bytes), *[""] * 5)
        for group in topic.groups:
            yield (name, "", "", "", *columns_of(group, speeds((name, group.name), group.done)))


def columns_of(group: GroupRow, speed: float) -> tuple[str, ...]:
    return group.name, str(group.members), f"{speed:,.0f}", f"{group.behind:,}", f"{group.permits:,}"


def size(count: int) -> str:
    """
    >>> size(0), size(1_500), size(2_000_000_000)
    ('0 B', '1.5 kB', '2.0 GB')
    """
    value, unit = float(count), "B"
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            break
        value /= 1000
    return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"


def table(topics: list[TopicRow], speeds: Speeds) -> Any:
    """The rows as rich shows them."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    if not topics:
        return Text("no topics yet", style="dim")
    shown = Table(box=box.SIMPLE_HEAD, header_style="bold cyan", padding=0)
    for name in COLUMNS:
        left = name in ("topic", "group")
        shown.add_column(name, justify="left" if left else "right", no_wrap=not left, overflow="fold")
    for row in together(lines(topics, speeds)):
        shown.add_row(*row)
    return shown


def together(rows: Iterable[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """A topic's first group stands in the topic's row, the others below it.

    >>> list(together([("a", "1", "", "", ""), ("a", "", "", "", "g"), ("a", "", "", "", "h"), ("b", "2", "", "", "")]))
    [('a', '1', '', '', 'g'), ('', '', '', '', 'h'), ('b', '2', '', '', '')]
    """
    waiting: tuple[str, ...] = ()
    for row in rows:
        if not row[4]:
            if waiting:
                yield waiting
            waiting = row
        elif waiting:
            yield waiting[:4] + row[4:]
            waiting = ()
        else:
            yield "", *row[1:]
    if waiting:
        yield waiting
