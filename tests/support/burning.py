"""A thread that never gives the GIL away by itself, and a peer outside of this process, which does not need it."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_PEER = """
import socket, sys, time
peer = socket.socket(fileno=int(sys.argv[1]))
peer.setblocking(True)
print("ready", flush=True)
for reply in sys.argv[3:]:
    peer.recv(65536)
    time.sleep(float(sys.argv[2]))
    peer.sendall(bytes.fromhex(reply))
"""


@contextmanager
def burning() -> Iterator[None]:
    """Meanwhile a thread computes: who wants its turn gets it 50 ms after asking, ten times the usual, so that a busy
    machine's delays do not count."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(0.05)
    over = threading.Event()

    def burn() -> None:
        while not over.is_set():
            sum(range(1000))

    thread = threading.Thread(target=burn)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        sys.setswitchinterval(usual)


@contextmanager
def answering(peer: socket.socket, replies: Sequence[bytes], seconds: float) -> Iterator[None]:
    """Each thing that comes has its reply, so long after it came."""
    command = [sys.executable, "-S", "-E", "-c", _PEER, str(peer.fileno()), str(seconds)]
    command += [reply.hex() for reply in replies]
    with subprocess.Popen(command, pass_fds=[peer.fileno()], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        yield
    assert process.returncode == 0
