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
        return bool(self.batch.done)

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
        if not self.batch.done and not self.batch.wait(timeout):
            raise DeadlineError(f"the outcome was not there within {timeout} s")
        return self.batch.outcome(self.index)
