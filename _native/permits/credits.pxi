# Permits of one Pulsar consumer: window == at_broker + here + owed, with owed below zero as a debt.

cdef inline int _check_permits(long long count) except -1:
    if count < 0 or count > MOST:
        raise ValueError(f"{count} is no number of permits")
    return 0


cdef class Credits:
    cdef long long _window, _at_broker, _here, _owed, _epoch
    cdef bint _zero_queue, _paused, _live
    cdef long long _arrived, _granted, _flows, _resets, _stale_arrived, _stale_released, _excess
    cdef long long _reasons[REASONS]

    def __init__(self, long long window):
        _check_permits(window)
        self._window = self._owed = window
        self._zero_queue = window == 0
        self._epoch = -1
        self._at_broker = self._here = 0
        self._paused = self._live = False
        self._arrived = self._granted = self._flows = self._resets = 0
        self._stale_arrived = self._stale_released = self._excess = 0
        for reason in range(REASONS):
            self._reasons[reason] = 0

    @property
    def epoch(self):
        return self._epoch

    @property
    def window(self):
        return self._window

    @property
    def zero_queue(self):
        return self._zero_queue

    @property
    def at_broker(self):
        return self._at_broker

    @property
    def here(self):
        return self._here

    @property
    def released(self):
        return self._owed if self._owed > 0 else 0

    @property
    def debt(self):
        return -self._owed if self._owed < 0 else 0

    @property
    def half(self):
        return self._half()

    @property
    def paused(self):
        return self._paused

    def reset(self, long long epoch, /):
        if epoch < 0 or epoch < self._epoch:
            raise ValueError(f"epoch {epoch} is over, {self._epoch} was reached")
        self._epoch = epoch
        self._live = True
        self._at_broker = self._here = 0
        self._owed = self._window
        self._resets += 1

    def lost(self):
        self._live = False

    def arrive(self, long long count, long long epoch, /):
        _check_permits(count)
        if epoch != self._epoch or not self._live:
            self._stale_arrived += count
            return False
        self._at_broker -= count
        self._here += count
        self._arrived += count
        return True

    def release(self, long long count, long long reason, long long epoch, /):
        _check_permits(count)
        if reason < 0 or reason >= REASONS:
            raise ValueError(f"{reason} is no reason to release")
        if epoch != self._epoch or not self._live:
            self._stale_released += count
            return False
        if count > self._here:
            self._excess += count - self._here
            count = self._here
        self._here -= count
        self._owed += count
        self._reasons[reason] += count
        return self._due() > 0

    def due(self):
        return self._due()

    def flow(self):
        cdef long long count = self._due()
        if count:
            self._at_broker += count
            self._owed -= count
            self._granted += count
            self._flows += 1
        return count

    def pause(self):
        self._paused = True

    def resume(self):
        self._paused = False

    def resize(self, long long delta, /):
        if self._zero_queue:
            raise ValueError("the window of a zero-queue consumer is the number of its waiting receives")
        if delta < -MOST or delta > MOST or self._window + delta < 1 or self._window + delta > MOST:
            raise ValueError(f"a window of {int(self._window) + delta} is impossible")
        self._window += delta
        self._owed += delta

    def receive_waits(self):
        self._zero_queue_only()
        self._window += 1
        self._owed += 1

    def receive_ends(self):
        self._zero_queue_only()
        if not self._window:
            raise ValueError("no receive waits")
        self._window -= 1
        self._owed -= 1

    def counts(self):
        return {
            "arrived": self._arrived,
            "delivered": self._reasons[0],
            "skipped": self._reasons[1],
            "discarded": self._reasons[2],
            "expired": self._reasons[3],
            "chunk": self._reasons[4],
            "granted": self._granted,
            "flows": self._flows,
            "stale_arrived": self._stale_arrived,
            "stale_released": self._stale_released,
            "excess": self._excess,
            "resets": self._resets,
        }

    cdef inline long long _half(self) noexcept:
        return 1 if self._zero_queue or self._window < 4 else self._window >> 1

    cdef inline long long _due(self) noexcept:
        if self._owed < self._half() or self._paused or not self._live:
            return 0
        if self._zero_queue and self._window <= self._here:
            return 0
        return self._owed

    cdef int _zero_queue_only(self) except -1:
        if not self._zero_queue:
            raise ValueError("receives are counted by a zero-queue consumer only")
        return 0
