"""Owns the operators' tool of RocketMQ, mqadmin, run on a real broker: what it prints for each command."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.real import jars
from tests.real.rocketmq import OPENS, VERSION

PROGRAM = Path(__file__).parent / "java" / "Operator.java"
SMALL = ["-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true"]
PATIENCE = 180.0


def mqadmin(home: Path, name_server: str, *commands: str) -> list[str]:
    """What each command printed; all of them in one JVM."""
    home.mkdir(parents=True, exist_ok=True)
    classpath = jars.compiled(PROGRAM, jars.rocketmq(VERSION))
    flags = [f"-Duser.home={home}", f"-Drocketmq.home.dir={home}"]
    lines = [f"{command} -n {name_server}" for command in commands]
    line = ["java", *SMALL, *OPENS, *flags, "-cp", classpath, "Operator", *lines]
    done = subprocess.run(
        line, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=PATIENCE
    )
    spoken = [line for line in done.stdout.splitlines() if " |-" not in line]  # but not logback about itself
    printed = "\n".join(spoken).split("@@ ")[1:]
    assert len(printed) == len(commands) + 1, done.stdout
    return [text.partition("\n")[2] for text in printed[:-1]]
