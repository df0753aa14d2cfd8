"""Owns `mqclient broker`: an embedded broker as a process of its own."""

from __future__ import annotations

import argparse

from mqclient.broker import __main__ as standalone


def add_arguments(parser: argparse.ArgumentParser) -> None:
    standalone.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Print the addresses, serve until Ctrl-C or SIGTERM."""
    return standalone.serve(options)
