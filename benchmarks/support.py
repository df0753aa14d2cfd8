"""How a figure is measured: several contenders, interleaved in one run, the best of many rounds each.

A micro benchmark is a function `bench_…(compare)` in `benchmarks/micro/bench_<module>.py`, parametrized at will. It
measures one figure, whose name starts with the module's:

    from benchmarks.support import floor, twins

    native, pure = twins("remoting")                      # the two modules, imported when first used

    @pytest.mark.parametrize("count", [32, 1024])
    def bench_lazy(compare: Compare, count: int) -> None:
        body = …
        compare(
            f"remoting.lazy.{count}",                     # its name in tables, plot and bounds.json
            per=count,                                    # messages that one call moves
            native=lambda: native.decode_messages(body),
            pure=lambda: pure.decode_messages(body),
            floor=floor("remoting", "walk", count),       # a C program; or any callable
            asked="<= 4 x the C walk",                    # the issue's words, for the table
        )

A contender is a callable; or `Contender(run, setup)` where `setup()` makes, untimed, the tuple of arguments for each
call; or `floor(program, *arguments)`. Others than native, pure and floor may join under any name (`zlib=…`).

`bounds.json` holds ratios only, between any two contenders of a figure, on the best rounds:
`{"remoting.lazy.32 native/floor": {"max": 4, "why": "…"}, "remoting.full.32 pure/native": {"min": 25, "why": "…"}}`.
`make test` checks them in a short form. `make bench` measures in full, `python -m benchmarks.run -k remoting` a part.

Times are processor time: what else runs on the machine disturbs caches, but is not counted.

A floor program `benchmarks/floor/<program>.c` is given the arguments as text, runs one round of at least some
milliseconds (CLOCK_PROCESS_CPUTIME_ID) and prints one number: nanoseconds per message. It is called once per round.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent / "build" / "floor"
NOT_ASKED = "not asked for"


@dataclass(frozen=True)
class Contender:
    """`run(*setup())`, of which only `run` is timed."""

    run: Callable[..., object]
    setup: Callable[[], tuple[Any, ...]] = tuple


@dataclass(frozen=True)
class Floor:
    """A C program that prints the nanoseconds per message of one round."""

    program: str
    arguments: tuple[str, ...]
    flags: tuple[str, ...] = ()

    def round(self) -> float:
        command = [str(compiled(self.program, self.flags)), *self.arguments]
        return float(subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout)


Competitor: TypeAlias = Callable[[], object] | Contender | Floor


@dataclass
class Figure:
    """What came out for one name: per contender the nanoseconds per message of each round."""

    name: str
    per: int
    asked: str = ""
    rounds: dict[str, list[float]] = field(default_factory=dict)

    def best(self, contender: str) -> float:
        return min(self.rounds[contender])

    def to_json(self) -> dict[str, Any]:
        contenders = {
            name: {"best": min(times), "median": statistics.median(times), "rounds": len(times)}
            for name, times in self.rounds.items()
        }
        return {"name": self.name, "per": self.per, "asked": self.asked, "contenders": contenders}


@dataclass
class Compare:
    """Measures one figure into pytest-benchmark's extra_info; pytest-benchmark's own times are native's."""

    benchmark: BenchmarkFixture
    rounds: int
    seconds: float
    """What one round of one contender should last at least."""
    budget: float
    """Seconds after which a slow rival is left alone, once it had three rounds."""
    wanted: frozenset[str]
    """Names of figures; empty: all."""
    done: list[Figure]
    """Where the figure is added."""

    def __call__(
        self,
        name: str,
        *,
        per: int,
        native: Callable[[], object] | Contender,
        pure: Competitor | None = None,
        floor: Competitor | None = None,
        asked: str = "",
        **others: Competitor,
    ) -> Figure:
        if self.wanted and name not in self.wanted:
            pytest.skip(NOT_ASKED)
        figure = Figure(name, per, asked)
        rivals = {key: rival for key, rival in {"pure": pure, "floor": floor, **others}.items() if rival is not None}
        timers = {key: self._timer(rival, per) for key, rival in rivals.items()}
        hero = _contender(native)
        calls = self._calls(hero)
        spent = dict.fromkeys(rivals, 0.0)

        def before_each() -> tuple[tuple[Any, ...], dict[str, Any]]:
            for key, timer in timers.items():
                times = figure.rounds.setdefault(key, [])
                if len(times) < 3 or spent[key] < self.budget:
                    start = time.perf_counter()
                    times.append(timer())
                    spent[key] += time.perf_counter() - start
            return ([hero.setup() for _ in range(calls)],), {}

        def all_calls(arguments: list[tuple[Any, ...]]) -> None:
            _run(hero.run, arguments)

        pedantic: Callable[..., object] = self.benchmark.pedantic
        pedantic(all_calls, setup=before_each, rounds=self.rounds, iterations=1)
        assert self.benchmark.stats is not None, "benchmarks are switched off"
        data = self.benchmark.stats.stats.data
        figure.rounds = {"native": [1e9 * seconds / (calls * per) for seconds in data], **figure.rounds}
        self.benchmark.extra_info["figure"] = figure.to_json()
        self.done.append(figure)
        return figure

    def _timer(self, rival: Competitor, per: int) -> Callable[[], float]:
        """One round: nanoseconds per message."""
        if isinstance(rival, Floor):
            rival.round()
            return rival.round
        contender = _contender(rival)
        calls = self._calls(contender)
        return lambda: _time(contender, calls) / (calls * per)

    def _calls(self, contender: Contender) -> int:
        """How many calls a round needs; this also warms up."""
        calls = 1
        while (spent := _time(contender, calls)) < self.seconds * 1e9 and calls < 1 << 20:
            calls = max(calls + 1, min(calls * 10, int(calls * 1.2 * self.seconds * 1e9 / max(spent, 1))))
        return calls


def _contender(of: Callable[[], object] | Contender) -> Contender:
    return of if isinstance(of, Contender) else Contender(of)


def _run(run: Callable[..., object], arguments: list[tuple[Any, ...]]) -> None:
    for given in arguments:
        run(*given)


def _time(contender: Contender, calls: int) -> int:
    arguments = [contender.setup() for _ in range(calls)]
    start = time.process_time_ns()
    _run(contender.run, arguments)
    return time.process_time_ns() - start


class _Late:
    """A module that is imported when first used; if that fails, the benchmark is skipped, with the reason."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith(("_", "pytest")):
            raise AttributeError(attribute)  # pytest looks at everything that it collects
        try:
            module = import_module(self._name)
        except ImportError as error:
            pytest.skip(f"{self._name} is not there: {error}")
        value = self.__dict__[attribute] = getattr(module, attribute)  # from now on an ordinary attribute
        return value


def twins(module: str) -> tuple[Any, Any]:
    """The native and the pure module of that name, imported when first used."""
    return _Late(f"mqclient._native.{module}"), _Late(f"mqclient._pure.{module}")


@cache
def compiled(program: str, flags: tuple[str, ...] = ()) -> Path:
    """The program, compiled anew if its source or a header is younger; skips where there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("there is no C compiler for the floor")
    source, binary = HERE / "floor" / f"{program}.c", BUILD / program
    BUILD.mkdir(parents=True, exist_ok=True)
    youngest = max(path.stat().st_mtime for path in [source, *source.parent.glob("*.h")])
    if not binary.exists() or binary.stat().st_mtime < youngest:
        fresh = binary.with_suffix(f".{os.getpid()}")  # another process may compile the same, or run what is there
        command = [compiler, "-O3", "-o", str(fresh), str(source), *flags]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.fail(f"{source.name} does not compile:\n{done.stderr}")
        fresh.replace(binary)
    return binary


def floor(program: str, *arguments: object, flags: tuple[str, ...] = ()) -> Floor:
    """`benchmarks/floor/<program>.c`, compiled with -O3 (and `flags`: "-lz" …) into build/floor when first used.

    Where there is no C compiler the benchmark is skipped, with that reason.
    """
    return Floor(program, tuple(str(argument) for argument in arguments), flags)
