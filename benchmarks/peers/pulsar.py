"""The official Pulsar client and ours, line by line: rates, processor time and latency, over a server that counts.

`python -m benchmarks.peers.pulsar [--rounds N] [--line NAME …] [--url pulsar://… | --real]`; the extra `peers` has the
peer.

By default the server is `benchmarks/floor/pulsar_server.c`, which hides nothing of the client; with `--url` a broker
that is there, with `--real` one that is booted for it (see tests/real). Equal settings: bodies of 100 bytes, entries of
up to 1,000 messages or 128 KiB, 20,000 pending, receiver queue 1,000. The two alternate; each round is measured in a
process of its own, so that `getrusage` counts only its client. A round whose messages, acknowledgements, sequence ids
or checksums the server counts wrong is an error.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.peers.pulsar_lines import LINES, OFFICIAL, OURS, Round, fill
from benchmarks.support import compiled

QUEUE = 1000
NAMES = {"official": "pulsar-client 3.13.0", "ours": "mqclient"}


@dataclass
class Server:
    """The canned one, over its standard input and output."""

    process: subprocess.Popen[str]
    url: str

    def ask(self, line: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def check(self, line: str, count: int) -> None:
        """What it counted in the round that has just ended."""
        found = json.loads(self.ask("report"))
        if LINES[line].sends:
            wrong = found["sent"] != count or found["gaps"] or found["bad_crc"]
        else:
            asked = found["granted"] - count
            wrong = found["acked"] != count or found["twice"] or found["redeliver"] or not 0 <= asked <= 3 * QUEUE
        if wrong:
            raise AssertionError(f"{line}: {count} messages were due, the server counted {found}")


@contextmanager
def canned(batch: int, body: int) -> Iterator[Server]:
    command = [str(compiled("pulsar_server")), str(body), str(batch)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = process.stdout.readline().split()[1]
        yield Server(process, f"pulsar://127.0.0.1:{port}")
        process.kill()


@contextmanager
def real() -> Iterator[str]:
    """A standalone broker for as long as this runs."""
    from tests.real.pulsar import RealPulsar

    with TemporaryDirectory() as folder, RealPulsar(Path(folder)) as pulsar:
        yield pulsar.url


def one_round(client: str, line: str, url: str | None, body: int) -> Round:
    """In a process of its own, over a server of its own; what it counted is checked."""
    count = LINES[line].count(client) if url is None else min(LINES[line].count(client), LINES[line].real)
    topic = f"peers-{client}-{line.replace('_', '-')}-{os.urandom(6).hex()}"
    if url is not None:
        if not LINES[line].sends:
            fill(url, topic, count, b"x" * body, LINES[line].batch)
        return measured_apart(client, line, url, topic, count, body)
    with canned(LINES[line].batch, body) as server:
        server.ask(f"total {0 if LINES[line].sends else count}")
        found = measured_apart(client, line, server.url, topic, count, body)
        server.check(line, count)
    return found


def measured_apart(client: str, line: str, url: str, topic: str, count: int, body: int) -> Round:
    command = [sys.executable, "-m", "benchmarks.peers.pulsar_lines", client, line, url, topic, str(count), str(body)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        raise AssertionError(f"{client} {line}: {done.stderr[-2000:]}")
    found: Round = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(line: str, rounds: int, url: str | None, body: int) -> None:
    """Alternate, then print the medians and their ratios."""
    found: dict[str, list[Round]] = {client: [] for client in NAMES}
    for _ in range(max(rounds, LINES[line].rounds)):
        for client in NAMES:
            found[client].append(one_round(client, line, url, body))
    figures = {
        client: {key: statistics.median(one[key] for one in rows) for key in rows[0]} for client, rows in found.items()
    }
    print(f"| {line} | {text(figures['official'])} | {text(figures['ours'])} | {ratios(**figures)} |", flush=True)


def text(figures: Round) -> str:
    latency = f", p50 {figures['p50_us']:.0f} µs" if "p50_us" in figures else ""
    return f"{figures['rate'] / 1000:,.2f} k/s, {figures['cpu_us']:.2f} µs CPU{latency}"


def ratios(official: Round, ours: Round) -> str:
    latency = f", {ours['p50_us'] / official['p50_us']:.2f} × p50" if "p50_us" in ours else ""
    rate, cpu = ours["rate"] / official["rate"], ours["cpu_us"] / official["cpu_us"]
    return f"{rate:.1f} × the rate, {cpu:.3f} × the CPU{latency}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--line", action="append", choices=list(LINES))
    parser.add_argument("--url", help="a broker that is there, instead of the canned server")
    parser.add_argument("--real", action="store_true", help="boot a real broker")
    parser.add_argument("--body", type=int, default=100)
    options = parser.parse_args()
    print(f"| | {NAMES['official']} | {NAMES['ours']} | ratio |\n|---|---|---|---|", flush=True)
    with real() if options.real else nullcontext(options.url) as url:
        for line in options.line or [line for line in LINES if line in OFFICIAL and line in OURS]:
            compare(line, options.rounds, url, options.body)


if __name__ == "__main__":
    main()
