# The outcome of one message that was submitted: no state of its own, no cycle, so the collector need not know it.

@cython.final
@cython.no_gc
@cython.freelist(1024)
cdef class SendFuture:
    cdef readonly object batch
    cdef readonly Py_ssize_t index

    def __init__(self, batch, Py_ssize_t index):
        self.batch = batch
        self.index = index

    def done(self):
        return bool(self.batch.settled > self.index)

    def result(self, timeout=None):
        outcome = self._outcome(timeout)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def exception(self, timeout=None):
        outcome = self._outcome(timeout)
        return outcome if isinstance(outcome, BaseException) else None

    def add_done_callback(self, callback, /):
        self.batch.on_done(callback, self.index)

    def __eq__(self, other):
        cdef SendFuture rival
        if type(other) is not SendFuture:
            return NotImplemented
        rival = <SendFuture>other
        return self.batch is rival.batch and self.index == rival.index

    def __hash__(self):
        return hash((<Py_ssize_t><PyObject*>self.batch, self.index))

    cdef object _outcome(self, timeout):
        if self.batch.settled <= self.index and not self.batch.wait(timeout, self.index):
            raise DeadlineError(f"the outcome was not there within {timeout} s")
        return self.batch.outcome(self.index)


@cython.final
@cython.freelist(1024)
cdef class SendWait:
    """What a task of asyncio awaits for the outcome of a message: a future to it; to us, one wake-up for a batch."""

    cdef readonly object batch
    cdef readonly Py_ssize_t index
    cdef public bint _asyncio_future_blocking
    cdef object _loop, _callback, _context, _outcome
    cdef bint _cancelled

    awaitable = True

    def __init__(self, batch, Py_ssize_t index, loop):
        self.batch = batch
        self.index = index
        self._loop = loop

    def __await__(self):
        return self

    def __iter__(self):
        return self

    def __next__(self):
        if self.batch.done:
            raise StopIteration(self.result())
        self._asyncio_future_blocking = True
        return self

    def get_loop(self):
        return self._loop

    def done(self):
        return self._cancelled or bool(self.batch.done)

    def cancelled(self):
        return self._cancelled

    def result(self):
        if self._cancelled:
            raise _cancelled_error()
        if self._outcome is None:
            self._outcome = self.batch.outcome(self.index)
        if isinstance(self._outcome, BaseException):
            raise self._outcome
        return self._outcome

    def cancel(self, msg=None):
        """The task's waiting ends, not the message."""
        if self._cancelled or self.batch.done:
            return False
        self._cancelled = True
        self._loop.call_soon(_wake_all, [self])
        return True

    def add_done_callback(self, callback, *, context=None):
        if self._callback is not None:
            raise RuntimeError("awaited by two tasks")
        if self._cancelled or self.batch.done:
            self._loop.call_soon(callback, self, context=context)
        else:
            self._callback = callback
            self._context = context

    def remove_done_callback(self, callback):
        if self._callback is None or self._callback != callback:
            return 0
        self._callback = self._context = None
        return 1


def wake(list waits not None, /):
    """All of one loop, in its next turn."""
    (<SendWait?>waits[0])._loop.call_soon(_wake_all, waits)


def _wake_all(list waits):
    cdef Py_ssize_t place
    cdef SendWait wait
    for place in range(len(waits)):
        wait = <SendWait>waits[place]
        callback, context = wait._callback, wait._context
        if callback is None:
            continue
        wait._callback = wait._context = None
        try:
            if context is None:
                callback(wait)
            else:
                context.run(callback, wait)
        except BaseException:  # Ctrl-C: the others are woken all the same
            if place + 1 < len(waits):
                wait._loop.call_soon(_wake_all, waits[place + 1 :])
            raise


cdef object _cancelled_error():
    from asyncio import CancelledError

    return CancelledError()
