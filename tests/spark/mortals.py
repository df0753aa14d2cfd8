"""What dies in the restart ledger, and comes back: brokers embedded and real, the driver, its cluster."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

from tests.real.pulsar import RealPulsar
from tests.real.rocketmq import RealRocketMQ
from tests.spark.support import ask, deduplicating, environment, wait
from tests.support.tree import ROOT

LOCAL_CLUSTER = "local-cluster[2,1,1024]"


class Embedded:
    """An embedded broker of its own process, on its folder and its addresses whatever happens to it."""

    def __init__(self, folder: Path) -> None:
        self._command = [sys.executable, "-m", "mqclient.broker", "--data", str(folder)]
        self._addresses: dict[str, str] = {}
        self._process = self._start()
        self.name_server, self.pulsar_url = self._addresses["name_server"], self._addresses["pulsar_url"]
        deduplicating(self._addresses["pulsar_rest"], "public/once")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def again(self, random: Random) -> None:
        self.kill()
        self._process = self._start()

    def _start(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True, env=environment(), cwd=ROOT)
        assert process.stdout is not None
        found: dict[str, str] = {}
        while not {"name_server", "pulsar_url", "pulsar_rest"} <= found.keys():
            line = process.stdout.readline()
            assert line, "the broker did not start"
            name, _, address = line.strip().partition("=")
            found[name] = address
        assert self._addresses in ({}, found)
        self._addresses = found
        return process


class Real:
    """RocketMQ 5.5.0 and Pulsar 4.2.4 of the test's own: one of them dies at a time."""

    def __init__(self, folder: Path) -> None:
        self._stack = ExitStack()
        with self._stack as stack:
            self._rocketmq = stack.enter_context(RealRocketMQ(folder / "rocketmq", brokers=1))
            self._pulsar = stack.enter_context(RealPulsar(folder / "pulsar"))
            self._keep("public/once", "public/default")
            deduplicating(self._pulsar.rest, "public/once")
            self._stack = stack.pop_all()
        self.name_server, self.pulsar_url = self._rocketmq.name_server, self._pulsar.url

    def _keep(self, *namespaces: str) -> None:
        """What nobody subscribed to is dropped with its ledger, and here it is read at the end."""
        for namespace in namespaces:
            if namespace != "public/default":
                ask(self._pulsar.rest, "PUT", f"namespaces/{namespace}", b'{"replication_clusters": ["standalone"]}')
            forever = b'{"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}'
            ask(self._pulsar.rest, "POST", f"namespaces/{namespace}/retention", forever)

    def kill(self) -> None:
        self._stack.close()

    def again(self, random: Random) -> None:
        if random.random() < 0.5:
            self._pulsar.jvm.kill()
            self._pulsar.restart()
        else:
            self._rocketmq.brokers[0].kill()
            self._rocketmq.brokers[0].start()


class Driver:
    """The pipeline, its JVM and its executors: one process group, started anew after each end."""

    def __init__(self, given: dict[str, Any], log: Path, cluster: tuple[int, ...] = ()) -> None:
        """`cluster`: processes that run executors for it, and outlive it."""
        self._given = given
        self._log = log
        self._cluster = cluster
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        with self._log.open("a") as log:
            command = [sys.executable, "-m", "tests.spark.pipeline", json.dumps(self._given)]
            self._process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment(),
                cwd=ROOT,
                start_new_session=True,
            )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "running\n", self._log.read_text()[-4000:]

    def kill(self) -> None:
        process = self._process
        if process is None:
            return
        assert process.stdout is not None
        for pid in [*descendants(process.pid), process.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        self._process = None

    def again_if_it_ended(self) -> None:
        """A query that lost its broker for too long ends, as Spark's queries do; whoever runs it starts it again."""
        assert self._process is not None
        if self._process.poll() is not None:
            self.kill()
            self.start()

    def executors(self) -> list[int]:
        return [pid for pid in self._below() if b"CoarseGrainedExecutorBackend" in command_line(pid)]

    def workers(self) -> list[int]:
        """Of tasks, of planning, and the process of a source."""
        kinds = (b"pyspark.daemon", b"streaming_source_runner")
        return [pid for pid in self._below() if any(kind in command_line(pid) for kind in kinds)]

    def _below(self) -> list[int]:
        assert self._process is not None
        return descendants(self._process.pid, *self._cluster)


def descendants(*pids: int) -> list[int]:
    children: dict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            status = (entry / "stat").read_text()
            children[int(status.rpartition(")")[2].split()[1])].append(int(entry.name))
    found, queue = [], list(pids)
    while queue:
        below = children[queue.pop()]
        found += below
        queue += below
    return found


def command_line(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


@contextmanager
def standalone(folder: Path) -> Iterator[tuple[str, tuple[int, ...]]]:
    """A master and two workers out of the wheel, on two addresses: Spark puts no second attempt beside the first.

    The master's address, and the processes that will run executors.
    """
    import pyspark

    home = Path(pyspark.__file__).parent
    base = {**environment(), "SPARK_HOME": str(home), "SPARK_DAEMON_MEMORY": "256m"}
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    master = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:
        log = stack.enter_context((folder / "cluster.log").open("w"))

        def run(name: str, host: str, *arguments: str) -> int:
            command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", "--host", host, *arguments]
            own = {**base, "SPARK_LOCAL_IP": host}
            process = subprocess.Popen(command, env=own, stdout=log, stderr=subprocess.STDOUT)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process.pid

        run("master.Master", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        workers = []
        for number in (1, 2):
            work = str(folder / f"worker-{number}")
            options = ("-c", "1", "-m", "1g", "-d", work, "--webui-port", "0", master)
            workers.append(run("worker.Worker", f"127.0.0.{number}", *options))
        wait(lambda: (folder / "cluster.log").read_text().count("Successfully registered with master") >= 2, 400)
        yield master, tuple(workers)
