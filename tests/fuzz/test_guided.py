"""Coverage-guided fuzzing under the sanitizers: 10^7 inputs for each decoder with --scale=soak."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from mqclient._impl import Impl
from tests.fuzz import guided
from tests.fuzz.targets import TARGETS
from tests.support.tree import ROOT

RUNS = {"ci": 20_000, "soak": 10_000_000}
NO_CLANG = 3


@pytest.mark.ci
@pytest.mark.long
@pytest.mark.timeout(0)
def test_decoders_stand_guided_fuzzing_and_a_planted_read_is_found(scale: str) -> None:
    done = subprocess.run([".ci/guided", str(RUNS[scale])], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == NO_CLANG:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    for name in ("remoting.decode_messages", "pulsar.feed"):
        assert f"{name}: the planted read was found" in done.stdout
    for name in TARGETS:
        assert f"{name}: no finding" in done.stdout


def test_the_targets_import_nothing_that_the_guided_venv_has_not() -> None:
    without = "import sys; sys.modules.update(pytest=None, hypothesis=None); import tests.fuzz.targets"
    subprocess.run([sys.executable, "-c", without], cwd=ROOT, check=True)


class Stub(ModuleType):
    """What atheris offers; fuzzing is running the corpus once."""

    run: Callable[[bytes], None]
    mutate: Callable[[bytes, int, int], bytes]

    def Mutate(self, data: bytes, size: int) -> bytes:
        return data[:size]

    def Setup(self, arguments: list[str], run: Callable[[bytes], None], custom_mutator: Callable[..., bytes]) -> None:
        self.arguments, self.run, self.mutate = arguments, run, custom_mutator

    def Fuzz(self) -> None:
        for number, file in enumerate(sorted(Path(self.arguments[-1]).iterdir())):
            mutant = self.mutate(file.read_bytes(), 500, number)
            assert len(mutant) <= 500
            self.run(mutant)


@pytest.mark.parametrize("name", TARGETS)
def test_the_seeds_become_a_corpus_that_runs(name: str, codec: Impl, tmp_path: Path) -> None:
    guided.fuzz(name, ["-runs=1", str(tmp_path / "corpus")], Stub("atheris"), codec)
    assert len(list((tmp_path / "corpus").iterdir())) == len(TARGETS[name].seeds())
