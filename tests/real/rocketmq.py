"""Owns a real RocketMQ: a name server and some brokers on free ports."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path

from mqclient.rocketmq.codes import Request
from tests.real import jars
from tests.real.process import Jvm, free_port

VERSION = "5.5.0"
OPENS = [
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
]
BROKER = """
brokerClusterName=DefaultCluster
brokerName={name}
brokerId=0
brokerIP1=127.0.0.1
listenPort={port}
namesrvAddr=127.0.0.1:{name_server}
storePathRootDir={store}
storePathCommitLog={store}/commitlog
mappedFileSizeCommitLog=67108864
mappedFileSizeConsumeQueue=600000
maxHashSlotNum=500000
maxIndexNum=2000000
diskMaxUsedSpaceRatio=99
autoCreateTopicEnable=true
autoCreateSubscriptionGroup=true
enablePropertyFilter=true
transactionCheckInterval=3000
transactionTimeOut=3000
waitTimeMillsInSendQueue=2000
flushDiskType=ASYNC_FLUSH
"""
BROKER_5 = """
recallMessageEnable=true
traceTopicEnable=true
timerWheelEnable=true
timerFlushIntervalMs=60000
mappedFileSizeTimerLog=10485760
maxTransferCountOnMessageInMemory=2048
maxTransferBytesOnMessageInMemory=8388608
"""
JAVA = Path(__file__).parent / "java"
LOGBACK = """<configuration><appender name="C" class="ch.qos.logback.core.ConsoleAppender"><encoder>
<pattern>%d %p %m%n</pattern></encoder></appender><root level="INFO"><appender-ref ref="C"/></root></configuration>"""


class RealRocketMQ:
    """`with RealRocketMQ(folder) as cluster: cluster.name_server`; brokers are called broker-a, broker-b and so on."""

    def __init__(
        self, folder: Path, brokers: int = 2, version: str = VERSION, options: str = "", patched: bool = False
    ) -> None:
        """`patched`: with the two broker changes of story 3, put in place by a starter of our own."""
        if shutil.which("java") is None:
            raise jars.Unavailable("RocketMQ needs a JDK, and there is no java on the PATH")
        self.folder = folder
        self.version = version
        self.name_server_port = free_port()
        self.name_server = f"127.0.0.1:{self.name_server_port}"
        self.libraries = jars.rocketmq(version)
        self.server_side_reset = version.startswith("5") and not patched
        self._classpath = f"{self.libraries}/*"
        self._starter = "org.apache.rocketmq.broker.BrokerStartup"
        if patched:
            self._classpath = jars.compiled(JAVA / "PatchedBroker.java", self.libraries)
            self._starter = "PatchedBroker"
            options += "useServerSideResetOffset=false\n"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "conf").mkdir(exist_ok=True)
        for name in ("logback_namesrv.xml", "logback_broker.xml"):  # 4.9 looks them up here
            (folder / "conf" / name).write_text(LOGBACK)
        self.namesrv = self._jvm(
            "namesrv", "org.apache.rocketmq.namesrv.NamesrvStartup", f"listenPort={self.name_server_port}\n", "256m"
        )
        self.brokers = [self._broker(f"broker-{'abcdefgh'[index]}", options) for index in range(brokers)]

    def __enter__(self) -> RealRocketMQ:
        try:
            self.namesrv.start()
            self.namesrv.await_ready(lambda: self.namesrv.says("boot success"))
            for broker in self.brokers:
                broker.start()
            for broker in self.brokers:
                broker.await_ready(lambda broker=broker: self._serves(broker))  # type: ignore[misc]
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def stop(self) -> None:
        """SIGKILL: nobody reads this store again, and a clean end takes a broker 14 s."""
        for jvm in [*self.brokers, self.namesrv]:
            jvm.kill()

    def _serves(self, broker: Jvm) -> bool:
        """It says so, and the name server knows it: on a loaded machine some seconds later."""
        if not broker.says("boot success"):
            return False
        header = json.dumps({"code": Request.GET_BROKER_CLUSTER_INFO, "flag": 0, "opaque": 1, "language": "JAVA"})
        frame = len(header).to_bytes(4, "big") + header.encode()
        with socket.create_connection(("127.0.0.1", self.name_server_port), timeout=10) as sock:
            sock.sendall(len(frame).to_bytes(4, "big") + frame)
            with sock.makefile("rb") as reply:
                return f'"{broker.name}"'.encode() in reply.read(int.from_bytes(reply.read(4), "big"))

    def _broker(self, name: str, options: str) -> Jvm:
        port = free_port(-2, 1)
        conf = BROKER.format(
            name=name, port=port, name_server=self.name_server_port, store=self.folder / f"store-{name}"
        )
        if self.version.startswith("5"):
            conf += BROKER_5
        return self._jvm(name, self._starter, conf + options, "768m")

    def _jvm(self, name: str, main: str, conf: str, heap: str) -> Jvm:
        path = self.folder / f"{name}.conf"
        path.write_text(conf)
        home = [f"-Duser.home={self.folder}", f"-Drocketmq.home.dir={self.folder}", "-Djava.net.preferIPv4Stack=true"]
        memory = ["-Xms128m", f"-Xmx{heap}", "-XX:MaxDirectMemorySize=512m", "-XX:TieredStopAtLevel=1"]
        command = [
            "java",
            *memory,
            *OPENS,
            *home,
            "-cp",
            self._classpath,
            main,
            "-c",
            str(path),
        ]
        return Jvm(name, command, self.folder)
