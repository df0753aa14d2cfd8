"""Owns `mqclient demo`: the product at work on an embedded broker, step by step, checked, ended within a minute."""

from __future__ import annotations

import argparse
import time

import mqclient
from mqclient.broker import EmbeddedBroker
from mqclient.cli import demo_pulsar, demo_rocketmq
from mqclient.cli.board import Board, board


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pace", type=float, default=1.0, help="how long each step is shown: 0 rushes through")


class Findings:
    """Counts what was checked, and tells the board."""

    def __init__(self, shown: Board) -> None:
        self._board = shown
        self.checked = 0
        self.failed = 0

    def check(self, ok: bool, text: str) -> None:
        self.checked += 1
        self.failed += not ok
        self._board.done(text, ok)


def run(options: argparse.Namespace) -> int:
    """Every step checks what it shows; the exit code is 0 if all was as it must be."""
    began = time.monotonic()
    with board() as shown:
        findings = Findings(shown)
        start = time.perf_counter()
        with EmbeddedBroker(brokers=2, mqcloud_patch=True) as broker:
            ready = (time.perf_counter() - start) * 1000
            shown.step(
                f"An embedded broker: two RocketMQ brokers behind a name server, and Pulsar ({mqclient.__impl__})"
            )
            findings.check(True, f"ready in {ready:.0f} ms: {broker.name_server}, {broker.pulsar_url}")
            demo_rocketmq.show(broker.name_server, shown, findings.check, options.pace)
            demo_pulsar.show(broker.pulsar_url, shown, findings.check, options.pace)
        shown.step("Summary")
        passed = findings.checked - findings.failed
        seconds = time.monotonic() - began
        shown.done(f"{passed} of {findings.checked} findings as they must be, in {seconds:.0f} s", not findings.failed)
    return 1 if findings.failed else 0
