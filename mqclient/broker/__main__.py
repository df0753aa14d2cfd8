"""`python -m mqclient.broker`: an embedded broker of its own process, which prints its addresses and serves."""

from __future__ import annotations

import argparse
import json
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mqclient.broker.broker import DOORS, EmbeddedBroker
from mqclient.errors import ConfigError, MQError

MOST_FILES = 1 << 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on; default: %(default)s")
    parser.add_argument("--brokers", type=int, default=1, help="RocketMQ brokers behind the one name server")
    parser.add_argument("--door", action="append", choices=sorted(DOORS), help="only this protocol; may be repeated")
    parser.add_argument(
        "--port",
        action="append",
        type=port,
        default=[],
        metavar="NAME=NUMBER",
        help="where an address is, by its printed name: name_server=9876, broker-a=10911, pulsar=6650, pulsar_rest=8080"
        "; else where it was in the run before on the same folder, else a free one",
    )
    parser.add_argument("--impl", choices=("native", "pure"), help="default: what MQCLIENT_IMPL asks for")
    parser.add_argument("--data", metavar="DIR", help="keep logs, offsets, topics and cursors there; else in memory")
    parser.add_argument("--fsync", action="store_true", help="sync what was kept before it is acknowledged")
    parser.add_argument("--retention", metavar="MB", type=int, help="keep at most so much of messages: the oldest go")
    parser.add_argument("--seed", type=int, default=0, help="of everything that is left to chance")
    parser.add_argument(
        "--set",
        action="append",
        type=setting,
        default=[],
        metavar="NAME=VALUE",
        help="a broker option in the protocols' own words, such as enablePropertyFilter=true; may be repeated",
    )


def port(text: str) -> tuple[str, int]:
    """A setting out of NAME=NUMBER."""
    name, _, number = text.partition("=")
    if not name or not number.isdecimal() or int(number) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=NUMBER, such as name_server=9876")
    return f"{name.removesuffix('_url').replace('-', '_')}_port", int(number)


def setting(text: str) -> tuple[str, Any]:
    """A broker option out of NAME=VALUE: numbers, true and false, and lists as JSON has them; all else is text."""
    name, equals, value = text.partition("=")
    if not name.isidentifier() or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE, such as enablePropertyFilter=true")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def make(options: argparse.Namespace) -> EmbeddedBroker:
    """The broker that was asked for, not started yet."""
    return EmbeddedBroker(
        host=options.host,
        doors=options.door,
        brokers=options.brokers,
        impl=options.impl,
        data=options.data,
        fsync=options.fsync,
        retention_bytes=None if options.retention is None else options.retention << 20,
        seed=options.seed,
        **dict(options.port),
        **dict(options.set),
    )


def started(options: argparse.Namespace) -> EmbeddedBroker:
    """ConfigError where the system says no: a port that is taken, a folder that cannot be written."""
    broker = make(options)
    try:
        return broker.start()
    except OSError as error:
        raise ConfigError(f"the broker cannot start: {error}") from error


@contextmanager
def signalled() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set.

    A handler of Python's would run in the main thread only: not at all while that waits and another thread got the
    signal, or inside of `wait`, where setting the event hangs. The byte that Python writes for a signal comes anyhow.
    """
    stop = threading.Event()
    near, far = socket.socketpair()
    far.setblocking(False)

    def hear() -> None:
        with near:
            near.recv(1)
        stop.set()

    handlers = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)}
    before = signal.set_wakeup_fd(far.fileno())
    threading.Thread(target=hear, name="mqclient-signals", daemon=True).start()
    try:
        yield stop
    finally:
        signal.set_wakeup_fd(before)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        far.close()


def open_many_files() -> None:
    """As many connections as the system lets a process have: shells begin with as few as 1,024."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def serve(options: argparse.Namespace, watch: Callable[[EmbeddedBroker, threading.Event], None] | None = None) -> int:
    """Print the addresses, serve until SIGINT or SIGTERM; `watch(broker, stop)` may show what goes on meanwhile."""
    open_many_files()
    with signalled() as stop, started(options) as broker:
        for name, address in broker.addresses().items():
            print(f"{name}={address}", flush=True)
        if watch is not None:
            watch(broker, stop)
        stop.wait()
    return 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="mqclient.broker", description=__doc__)
    add_arguments(parser)
    try:
        return serve(parser.parse_args(arguments))
    except MQError as error:
        print(f"mqclient.broker: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
