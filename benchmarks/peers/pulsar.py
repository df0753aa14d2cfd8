"""The official Pulsar client and ours, line by line: rates, processor time and latency, over a server that counts.

`python -m benchmarks.peers.pulsar [--rounds N] [--line NAME …] [--url pulsar://… | --real] [--jars DIR]`; the extra
`peers` has the peer. With its jars (`build/real/pulsar-…/lib`) the Java client joins where lines are many at once.

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
import signal
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
JAVA = {"receive_many", "send_many"}
"""Lines of which the Java client does the same."""


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

    def check(self, line: str, count: int, client: str = "ours") -> None:
        """What it counted in the round that has just ended. The Java client tells an entry twice now and then."""
        found = json.loads(self.ask("report"))
        if LINES[line].sends:
            wrong = found["sent"] != count or found["gaps"] or found["bad_crc"]
        else:
            asked = found["granted"] - count
            wrong = found["acked"] != count or found["redeliver"] or not 0 <= asked <= 3 * QUEUE
            wrong = wrong or (found["twice"] and client != "java")
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


def one_round(client: str, line: str, url: str | None, body: int, jars: Path | None = None) -> Round:
    """In a process of its own, over a server of its own; what it counted is checked."""
    count = LINES[line].count(client) if url is None else min(LINES[line].count(client), LINES[line].real)
    topic = f"peers-{client}-{line.replace('_', '-')}-{os.urandom(6).hex()}"
    if url is not None:
        if not LINES[line].sends:
            fill(url, topic, count, b"x" * body, LINES[line].batch)
        return measured_apart(command_of(client, jars), line, url, topic, count, body)
    with canned(LINES[line].entries(body), body) as server:
        server.ask(f"total {0 if LINES[line].sends else count}")
        found = measured_apart(command_of(client, jars), line, server.url, topic, count, body)
        server.check(line, count, client)
    return found


def command_of(client: str, jars: Path | None) -> list[str]:
    if client == "java":
        opens = ["--add-opens=java.base/java.nio=ALL-UNNAMED", "-Dio.netty.tryReflectionSetAccessible=true"]
        return ["java", *opens, "-cp", f"{jars}/*", str(Path(__file__).with_name("PulsarLines.java"))]
    return [sys.executable, "-m", "benchmarks.peers.pulsar_lines", client]


def measured_apart(command: list[str], line: str, url: str, topic: str, count: int, body: int) -> Round:
    command = [*command, line, url, topic, str(count), str(body)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    figures = [line for line in done.stdout.splitlines() if line.startswith("{")]
    # pulsar-client's asyncio face now and then ends its process by std::terminate, after all was measured and closed
    peers_end = "official" in command and done.returncode == -signal.SIGABRT
    if not figures or (done.returncode and not peers_end):
        raise AssertionError(f"{' '.join(command)}: {done.returncode}, {done.stderr[-2000:]}")
    found: Round = json.loads(figures[-1])
    return found


def compare(line: str, rounds: int, url: str | None, body: int, jars: Path | None = None) -> None:
    """Alternate, then print the medians and their ratios."""
    found: dict[str, list[Round]] = {client: [] for client in NAMES}
    if jars is not None and line in JAVA:
        found["java"] = []
    for _ in range(max(rounds, LINES[line].rounds)):
        for client, rows in found.items():
            rows.append(one_round(client, line, url, body, jars))
    figures = {
        client: {key: statistics.median(one[key] for one in rows) for key in rows[0]} for client, rows in found.items()
    }
    java = f"; Java: {text(figures.pop('java'))}" if "java" in figures else ""
    print(f"| {line} | {text(figures['official'])} | {text(figures['ours'])} | {ratios(**figures)}{java} |", flush=True)


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
    parser.add_argument("--jars", type=Path, help="those of the Java client, which joins with them")
    options = parser.parse_args()
    print(f"| | {NAMES['official']} | {NAMES['ours']} | ratio |\n|---|---|---|---|", flush=True)
    with real() if options.real else nullcontext(options.url) as url:
        for line in options.line or [line for line in LINES if line in OFFICIAL and line in OURS]:
            compare(line, options.rounds, url, options.body, options.jars)


if __name__ == "__main__":
    main()
