"""Owns a real Pulsar standalone on free ports."""

from __future__ import annotations

import shutil
import urllib.error
import urllib.request
from pathlib import Path

from tests.real import jars
from tests.real.process import Jvm, free_port

VERSION = "4.2.4"
OPENS = [
    f"--add-opens={module}=ALL-UNNAMED"
    for module in (
        "java.base/java.io",
        "java.base/java.util.zip",
        "java.base/java.nio",
        "java.base/jdk.internal.misc",
        "java.base/sun.net",
        "java.management/sun.management",
        "jdk.management/com.sun.management.internal",
        "java.base/jdk.internal.platform",
    )
]
DRIVERS = [
    f"-Dbookkeeper.metadata.{kind}.drivers=org.apache.pulsar.metadata.bookkeeper.PulsarMetadata{name}Driver"
    for kind, name in (("bookie", "Bookie"), ("client", "Client"))
]
CONF = """
clusterName=standalone
bindAddress=127.0.0.1
advertisedAddress=localhost
brokerServicePort={port}
webServicePort={web}
allowLoopback=true
managedLedgerDefaultEnsembleSize=1
managedLedgerDefaultWriteQuorum=1
managedLedgerDefaultAckQuorum=1
loadBalancerEnabled=false
ledgerStorageClass=org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage
nettyMaxFrameSizeBytes=5253120
journalSyncData=false
diskUsageThreshold=0.99
diskUsageWarnThreshold=0.99
acknowledgmentAtBatchIndexLevelEnabled=true
managedLedgerCacheSizeMB=256
dbStorage_writeCacheMaxSizeMb=64
dbStorage_readAheadCacheMaxSizeMb=64
numIOThreads=2
transactionCoordinatorEnabled=true
systemTopicEnabled=true
topicLevelPoliciesEnabled=true
delayedDeliveryEnabled=true
delayedDeliveryTickTimeMillis=100
forceDeleteNamespaceAllowed=true
forceDeleteTenantAllowed=true
"""
LOG4J = """<Configuration status="WARN">
  <Appenders><Console name="C" target="SYSTEM_OUT">
    <PatternLayout pattern="%d{ISO8601} %-5level %logger{36} - %msg%n"/>
  </Console></Appenders>
  <Loggers><Root level="info"><AppenderRef ref="C"/></Root><Logger name="org.apache.bookkeeper" level="warn"/></Loggers>
</Configuration>"""


class RealPulsar:
    """`with RealPulsar(folder) as pulsar: pulsar.url, pulsar.rest`.

    `options`: lines of its settings; {port} is its own port.

    Who gives advertisedListeners gives no address beside them.
    """

    def __init__(self, folder: Path, version: str = VERSION, options: str = "") -> None:
        if shutil.which("java") is None:
            raise jars.Unavailable("Pulsar needs a JDK, and there is no java on the PATH")
        folder.mkdir(parents=True, exist_ok=True)
        port, web = free_port(), free_port()
        self.url = f"pulsar://127.0.0.1:{port}"
        self.rest = f"http://127.0.0.1:{web}"
        conf = CONF.format(port=port, web=web) + options.replace("{port}", str(port))
        if "advertisedListeners" in options:
            conf = conf.replace("advertisedAddress=localhost\n", "")
        (folder / "broker.conf").write_text(conf)
        (folder / "log4j2.xml").write_text(LOG4J)
        memory = ["-Xms256m", "-Xmx1g", "-XX:MaxDirectMemorySize=1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        flags = ["-Djava.net.preferIPv4Stack=true", "-Dio.netty.tryReflectionSetAccessible=true"]
        flags += ["-Djute.maxbuffer=10485760", "-Dlog4j2.is.webapp=false", "-Dlog4j.shutdownHookEnabled=false"]
        flags += [f"-Dlog4j.configurationFile={folder}/log4j2.xml"]
        starter = ["org.apache.pulsar.PulsarStandaloneStarter", "--config", str(folder / "broker.conf"), "-nfw", "-nss"]
        data = ["--metadata-dir", str(folder / "metadata"), "--bookkeeper-dir", str(folder / "bookkeeper")]
        classpath = ["-cp", f"{jars.pulsar(version)}/*"]
        self.jvm = Jvm("pulsar", ["java", *memory, *flags, *OPENS, *DRIVERS, *classpath, *starter, *data], folder)

    def __enter__(self) -> RealPulsar:
        try:
            self.jvm.start()
            self.jvm.await_ready(self._ready)
        except BaseException:
            self.jvm.stop()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self.jvm.stop()

    def stop(self) -> None:
        self.jvm.stop()

    def restart(self) -> None:
        """After `jvm.kill()`: the same folder, the same ports."""
        self.jvm.start()
        self.jvm.await_ready(self._ready)

    def request(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """One REST call under /admin/v2."""
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.rest}/admin/v2{path}", body, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as reply:
            content: bytes = reply.read()
            return content

    def _ready(self) -> bool:
        # "brokers/ready" answers before the default namespace exists; this does not.
        try:
            self.request("GET", "/namespaces/public/default")
        except (urllib.error.URLError, OSError):
            return False
        return True
