"""`python -m mqclient.broker`: an embedded broker of its own process, which prints its addresses and serves."""

from __future__ import annotations

import argparse
import signal
import sys
import threading

from mqclient.broker.broker import DOORS, EmbeddedBroker


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--brokers", type=int, default=1, help="RocketMQ brokers behind the one name server")
    parser.add_argument("--door", action="append", choices=sorted(DOORS), help="only this protocol; may be repeated")
    parser.add_argument("--impl", choices=("native", "pure"), help="default: what MQCLIENT_IMPL asks for")


def serve(options: argparse.Namespace) -> int:
    """Print the addresses, serve until SIGINT or SIGTERM."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with EmbeddedBroker(host=options.host, doors=options.door, brokers=options.brokers, impl=options.impl) as broker:
        for name, address in broker.addresses().items():
            print(f"{name}={address}", flush=True)
        stop.wait()
    return 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="mqclient.broker", description=__doc__)
    add_arguments(parser)
    return serve(parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
