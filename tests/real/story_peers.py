"""Owns the Java members and operators of the stories' generation (4.9.7): started, read line by line, stopped by id."""

from __future__ import annotations

from pathlib import Path

from tests.real import jars
from tests.real.process import Jvm

VERSION = "4.9.7"
JAVA = Path(__file__).parent / "java"
SMALL = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true"]


class StoryPeer:
    """One Java process with a home of its own: its log and its broadcasting offsets lie there."""

    def __init__(self, program: str, home: Path, *arguments: str) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.home = home
        classpath = jars.compiled(JAVA / f"{program}.java", jars.rocketmq(VERSION))
        flags = [f"-Duser.home={home}", "-Drocketmq.client.rebalance.waitInterval=2000"]
        flags += [f"-Drocketmq.client.localOffsetStoreDir={home}/offsets"]
        self._jvm = Jvm(program, ["java", *SMALL, *flags, "-cp", classpath, program, *arguments], home)

    def __enter__(self) -> StoryPeer:
        self._jvm.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._jvm.kill()

    def said(self, word: str) -> list[str]:
        """The rest of each line that began with this word."""
        text = self._jvm.log.read_text(errors="replace")
        complete = text[: text.rfind("\n") + 1].splitlines()
        return [line[len(word) + 1 :] for line in complete if line.startswith(f"{word} ")]

    def consumed(self) -> list[str]:
        """The bodies that came, in order, with all their repetitions."""
        return [line.split(" ", 1)[1] for line in self.said("consumed")]

    def logged(self) -> str:
        """What the client of RocketMQ wrote into its log."""
        path = self.home / "logs" / "rocketmqlogs" / "rocketmq_client.log"
        return path.read_text(errors="replace") if path.exists() else ""


def member(home: Path, name_server: str, group: str, topic: str, model: str = "CLUSTERING") -> StoryPeer:
    """A push member whose client id is `127.0.0.1@` and the name of its home."""
    return StoryPeer("StoryMember", home, name_server, group, topic, model, home.name)


def reset(home: Path, name_server: str, group: str, topic: str) -> StoryPeer:
    """An operator who resets to the beginning, once."""
    return StoryPeer("StoryReset", home, name_server, group, topic)
