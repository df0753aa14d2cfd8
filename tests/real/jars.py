"""Owns the jars of the real brokers: fetched by Maven once, kept in the build folder."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

CACHE = Path(__file__).resolve().parents[2] / "build" / "real"

ROCKETMQ = ("rocketmq-namesrv", "rocketmq-broker", "rocketmq-tools", "rocketmq-client")
ROCKETMQ_4 = ("rocketmq-namesrv", "rocketmq-broker")
PULSAR = ("pulsar-broker",)


class Unavailable(Exception):
    """The real broker cannot be had here; the text says what is missing."""


def rocketmq(version: str) -> Path:
    """The folder of RocketMQ's jars of this version."""
    modules = ROCKETMQ if version.startswith("5") else ROCKETMQ_4
    return _fetch(f"rocketmq-{version}", "org.apache.rocketmq", modules, version, parent=None)


def pulsar(version: str) -> Path:
    """The folder of Pulsar's jars; the import of the parent pom keeps Maven from mixing versions of their needs."""
    return _fetch(f"pulsar-{version}", "org.apache.pulsar", PULSAR, version, parent="pulsar")


def compiled(program: Path, libraries: Path) -> str:
    """The class path of a program of our own over these jars; compiled when its text or its jars are new."""
    compiler = shutil.which("javac")
    if compiler is None:
        raise Unavailable(f"{program.name} needs a JDK, and there is no javac on the PATH")
    digest = hashlib.sha256(program.read_bytes() + str(libraries).encode()).hexdigest()[:12]
    folder = CACHE / "classes" / f"{program.stem}-{digest}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder.parent) as fresh:  # two runs at once: whoever is first has it
            command = [compiler, "-nowarn", "-d", f"{fresh}/out", "-cp", f"{libraries}/*", str(program)]
            result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
            if result.returncode:
                raise RuntimeError(f"{program.name} does not compile:\n{result.stderr}")
            with contextlib.suppress(OSError):
                Path(fresh, "out").rename(folder)
    return f"{folder}:{libraries}/*"


def _fetch(name: str, group: str, modules: tuple[str, ...], version: str, parent: str | None) -> Path:
    folder = CACHE / name
    done = folder / "complete"
    if done.exists():
        return folder / "lib"
    maven = shutil.which("mvn")
    if maven is None or shutil.which("java") is None:
        raise Unavailable(f"{name} needs a JDK and Maven, and one of them is not on the PATH")
    folder.mkdir(parents=True, exist_ok=True)
    with (CACHE / "fetching").open("w") as lock:  # workers of one run that copied into one folder broke each other
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            _copy(maven, folder, name, _pom(group, modules, version, parent))
            done.touch()
    return folder / "lib"


def _copy(maven: str, folder: Path, name: str, pom: str) -> None:
    (folder / "pom.xml").write_text(pom)
    command = [maven, "-B", "-ntp", "dependency:copy-dependencies", "-DoutputDirectory=lib", "-DincludeScope=runtime"]
    print(f"fetching the jars of {name} by Maven (once, some minutes)", flush=True)
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=1200)
    if result.returncode:
        raise Unavailable(f"Maven could not fetch {name}:\n{result.stdout[-2000:]}")


def _pom(group: str, modules: tuple[str, ...], version: str, parent: str | None) -> str:
    def dependency(artifact: str, rest: str = "") -> str:
        return (
            f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
            f"<version>{version}</version>{rest}</dependency>"
        )

    managed = ""
    if parent:
        imported = dependency(parent, "<type>pom</type><scope>import</scope>")
        managed = f"<dependencyManagement><dependencies>{imported}</dependencies></dependencyManagement>"
    wanted = "".join(dependency(artifact) for artifact in modules)
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>local</groupId>'
        "<artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>"
        f"{managed}<dependencies>{wanted}</dependencies></project>"
    )
