"""Owns `mqclient` and `python -m mqclient.cli`: which command is meant."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from mqclient import __version__
from mqclient.errors import MQError

COMMANDS: Final = {
    "broker": "an embedded RocketMQ and Pulsar broker on loopback ports, until Ctrl-C",
    "demo": "the product at work on an embedded broker, ends by itself",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    parser = argparse.ArgumentParser(prog="mqclient", description="RocketMQ and Pulsar for Python")
    parser.add_argument("--version", action="version", version=f"mqclient {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, text in COMMANDS.items():
        module = import_module(f"mqclient.cli.{name}")
        module.add_arguments(commands.add_parser(name, help=text, description=text))
    options = parser.parse_args(arguments)
    try:
        code: int = import_module(f"mqclient.cli.{options.command}").run(options)
    except KeyboardInterrupt:
        return 130
    except MQError as error:
        print(f"mqclient {options.command}: {error}", file=sys.stderr)
        return 1
    return code


if __name__ == "__main__":
    sys.exit(main())
