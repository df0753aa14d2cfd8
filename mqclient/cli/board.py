"""Owns what a running command shows: a live board with rich, or plain lines where there is no terminal or no rich."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

BARS = "▏▎▍▌▋▊▉█"


class Board(Protocol):
    """Steps that are ticked off, and panels that are shown while they change."""

    def __enter__(self) -> Board: ...

    def __exit__(self, *exc: object) -> None: ...

    def step(self, text: str) -> None:
        """A new step begins."""

    def done(self, text: str, ok: bool = True) -> None:
        """A finding: what was seen, and whether that is as it must be."""

    def panel(self, title: str, lines: Callable[[], list[str]]) -> None:
        """Show these lines under the title from now on; asked again whenever the board is drawn."""

    def close_panel(self, title: str) -> None:
        """Show the panel no longer."""


class PlainBoard:
    """One line a finding, for pipes and logs."""

    def __enter__(self) -> PlainBoard:
        return self

    def __exit__(self, *exc: object) -> None:
        sys.stdout.flush()

    def step(self, text: str) -> None:
        print(f"== {text}", flush=True)

    def done(self, text: str, ok: bool = True) -> None:
        print(f"   {'ok ' if ok else 'NOT OK '} {text}", flush=True)

    def panel(self, title: str, lines: Callable[[], list[str]]) -> None:
        """Panels are for watching; plain output has the findings."""

    def close_panel(self, title: str) -> None:
        """Nothing was opened."""


class LiveBoard:
    """Steps above, panels below, drawn ten times a second."""

    def __init__(self, console: Any = None) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = console or Console()
        self._panels: dict[str, Callable[[], list[str]]] = {}
        self._began = time.monotonic()
        self._live = Live(get_renderable=self._render, console=self._console, refresh_per_second=10, transient=True)

    def __enter__(self) -> LiveBoard:
        self._live.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._live.__exit__(*exc)  # type: ignore[arg-type]

    def step(self, text: str) -> None:
        self._console.print(f"\n[bold cyan]{text}[/]  [dim]{time.monotonic() - self._began:.1f} s[/]", highlight=False)

    def done(self, text: str, ok: bool = True) -> None:
        self._console.print(f"  [{'green]✔' if ok else 'bold red]✘'}[/] {text}", highlight=False)

    def panel(self, title: str, lines: Callable[[], list[str]]) -> None:
        self._panels[title] = lines

    def close_panel(self, title: str) -> None:
        self._panels.pop(title, None)

    def _render(self) -> Any:
        from rich.columns import Columns
        from rich.panel import Panel

        return Columns(
            [
                Panel("\n".join(lines()), title=title, border_style="cyan")
                for title, lines in list(self._panels.items())
            ],
            expand=True,
        )


def board() -> Board:
    """A live board on a terminal with rich (extra `cli`), else a plain one."""
    if not sys.stdout.isatty():
        return PlainBoard()
    try:
        return LiveBoard()
    except ImportError:
        return PlainBoard()


def bar(value: float, full: float, width: int = 24) -> str:
    """
    >>> bar(5, 10, 4)
    '██  '
    """
    eighths = round(max(0.0, min(1.0, value / full if full else 0.0)) * width * 8)
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + (BARS[rest - 1] if rest else "")).ljust(width)


class Rate:
    """How much something grew over the last second or so."""

    def __init__(self, read: Callable[[], int]) -> None:
        self._read = read
        self._marks: list[tuple[float, int]] = []

    def __call__(self) -> float:
        now = time.monotonic()
        self._marks = [mark for mark in self._marks if mark[0] > now - 1.5]
        self._marks.append((now, self._read()))
        (began, first), (_, last) = self._marks[0], self._marks[-1]
        return (last - first) / (now - began) if now > began else 0.0
