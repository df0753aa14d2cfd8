"""Clients of a process: shared, kept for a while, closed when idle, left alone by forks."""

from __future__ import annotations

import os
import sys
import threading
import time

import pytest

from mqclient.spark.clients import Clients


class Client:
    def __init__(self) -> None:
        self.closed = threading.Event()

    def close(self) -> None:
        self.closed.set()


def test_one_client_for_each_key() -> None:
    clients = Clients()
    with (
        clients.borrow("a", Client) as first,
        clients.borrow("a", Client) as second,
        clients.borrow("b", Client) as other,
    ):
        assert first is second
        assert first is not other
    with clients.borrow("a", Client) as third:
        assert third is first
    clients.close()
    assert first.closed.is_set()
    assert other.closed.is_set()
    assert len(clients) == 0


def test_an_idle_client_is_closed_and_made_anew() -> None:
    clients = Clients(idle=0.05)
    with clients.borrow("a", Client) as first:
        time.sleep(0.15)
        assert not first.closed.is_set()
    assert first.closed.wait(5)
    with clients.borrow("a", Client) as second:
        assert second is not first
    clients.close()


def test_a_failing_task_gives_it_back() -> None:
    clients = Clients(idle=0.01)
    with pytest.raises(ValueError, match="task"), clients.borrow("a", Client) as client:
        raise ValueError("task")
    assert client.closed.wait(5)


def test_a_fork_begins_without_clients() -> None:
    clients = Clients()
    os.register_at_fork(after_in_child=clients.forget)
    with clients.borrow("a", Client) as mine:
        clients._lock.acquire()
        pid = os.fork()
        if pid == 0:
            with clients.borrow("a", Client) as other:
                os._exit(0 if other is not mine else 1)
        clients._lock.release()
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    clients.close()


def test_while_the_interpreter_ends_no_thread_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """A suspended reader gives its client back then, and the start of a thread would wait for ever: one of Spark's
    source processes was seen to stay."""
    clients, before = Clients(), threading.active_count()
    with clients.borrow("key", Client):
        monkeypatch.setattr(sys, "is_finalizing", lambda: True)
    assert threading.active_count() == before
    clients.close()
