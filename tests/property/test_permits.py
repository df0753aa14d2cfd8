"""Random histories: permits are conserved, offsets and acknowledgements agree with a naive model, native with pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.property.twins import twins_of

TWINS = twins_of("permits")

MANY_STEPS = settings(stateful_step_count=80, deadline=None)


def same(answers: list[Any]) -> Any:
    """What all twins answered."""
    assert all(answer == answers[0] for answer in answers), answers
    return answers[0]


@dataclass
class Broker:
    """The other end, which has only its own view: what it was granted and what it deducted, for one connection."""

    permits: int = 0


class CreditsMachine(RuleBasedStateMachine):
    """`window = at broker + here and not yet released + released and not yet granted again`, through everything."""

    @initialize(window=st.sampled_from([0, 1, 2, 3, 10, 1000]))
    def open(self, window: int) -> None:
        self.accounts = [twin.Credits(window) for twin in TWINS]
        self.window = window
        self.zero_queue = window == 0
        self.epoch = -1
        self.live = False
        self.paused = False
        self.here = 0
        self.excess = 0
        self.stale = 0
        self.broker = Broker()

    def ask(self, name: str, *arguments: Any) -> Any:
        return same([getattr(account, name)(*arguments) for account in self.accounts])

    @rule(skipped=st.integers(0, 2))
    def connect(self, skipped: int) -> None:
        self.epoch = max(self.epoch, 0) + skipped
        self.live = True
        self.here = 0
        self.broker = Broker()
        self.ask("reset", self.epoch)

    @rule()
    def lose(self) -> None:
        self.live = False
        self.ask("lost")

    @rule(count=st.integers(0, 30))
    def push(self, count: int) -> None:
        """An entry: the broker sends while it has a permit, whatever the entry holds."""
        if not self.live or self.broker.permits <= 0:
            return
        self.broker.permits -= count
        self.here += count
        assert self.ask("arrive", count, self.epoch)

    @rule(count=st.integers(0, 30), back=st.integers(1, 3))
    def push_late(self, count: int, back: int) -> None:
        self.stale += count
        assert not self.ask("arrive", count, self.epoch - back)

    @rule(count=st.integers(0, 30), reason=st.integers(0, 4))
    def leave(self, count: int, reason: int) -> None:
        if self.live:
            count = min(count, self.here)
            self.here -= count
        else:
            self.stale += count
        assert self.ask("release", count, reason, self.epoch) == (self.ask("due") > 0)

    @rule(reason=st.integers(0, 4))
    def leave_all(self, reason: int) -> None:
        self.leave(self.here, reason)

    @rule(more=st.integers(1, 30), reason=st.integers(0, 4))
    def leave_too_many(self, more: int, reason: int) -> None:
        if self.live:
            self.ask("release", self.here + more, reason, self.epoch)
            self.here = 0
            self.excess += more

    @rule(count=st.integers(0, 30), reason=st.integers(0, 4), back=st.integers(1, 3))
    def leave_late(self, count: int, reason: int, back: int) -> None:
        self.stale += count
        assert not self.ask("release", count, reason, self.epoch - back)

    @rule()
    def pause(self) -> None:
        self.paused = True
        self.ask("pause")

    @rule()
    def resume(self) -> None:
        self.paused = False
        self.ask("resume")

    @precondition(lambda self: not self.zero_queue)
    @rule(delta=st.integers(-1000, 1000))
    def resize(self, delta: int) -> None:
        if self.window + delta >= 1:
            self.window += delta
            self.ask("resize", delta)

    @precondition(lambda self: self.zero_queue)
    @rule()
    def receive(self) -> None:
        self.window += 1
        self.ask("receive_waits")

    @precondition(lambda self: self.zero_queue and self.window > 0)
    @rule(taken=st.booleans())
    def receive_ends(self, taken: bool) -> None:
        self.window -= 1
        self.ask("receive_ends")
        if taken and self.live and self.here:
            self.here -= 1
            self.ask("release", 1, TWINS[0].DELIVERED, self.epoch)

    @rule()
    def flow(self) -> None:
        granted = self.ask("flow")
        assert not (granted and (self.paused or not self.live))
        self.broker.permits += granted
        if self.live and not self.paused:
            self.nobody_starves()

    def nobody_starves(self) -> None:
        """After a FLOW the broker may send: whatever is here will not bring the rest of the window by itself."""
        if self.zero_queue:
            unserved = self.window - self.here
            assert unserved <= 0 or self.broker.permits >= unserved
        else:
            assert self.broker.permits + self.here > self.window - max(self.window // 2, 1)

    @invariant()
    def conserved(self) -> None:
        for account in self.accounts:
            assert account.at_broker + account.here + account.released - account.debt == account.window
            assert account.released == 0 or account.debt == 0
            assert account.window == self.window
            assert account.epoch == self.epoch
            if self.live:
                assert (account.at_broker, account.here) == (self.broker.permits, self.here)

    @invariant()
    def counted(self) -> None:
        counts = self.ask("counts")
        assert counts["excess"] == self.excess
        assert counts["stale_arrived"] + counts["stale_released"] == self.stale


class OutstandingMachine(RuleBasedStateMachine):
    """Against a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.queues = [twin.Outstanding() for twin in TWINS]
        self.model: dict[int, int] = {}
        self.seen = -1

    def ask(self, name: str, *arguments: Any) -> Any:
        return same([getattr(queue, name)(*arguments) for queue in self.queues])

    @rule(gap=st.integers(-3, 20) | st.integers(0, 2**40), size=st.integers(0, 5000))
    def add(self, gap: int, size: int) -> None:
        offset = self.seen + 1 + gap
        if offset < 0:
            return
        new = offset > self.seen
        if new:
            self.model[offset] = size
            self.seen = offset
        assert self.ask("add", offset, size) == new

    @rule(gaps=st.lists(st.integers(1, 3), max_size=40), gap=st.integers(-2, 2))
    def add_many(self, gaps: list[int], gap: int) -> None:
        start = max(self.seen + gap, 0)
        offsets = [start + sum(gaps[:place]) for place in range(len(gaps))]
        new = {offset: offset % 100 for offset in offsets if offset > self.seen}
        self.model.update(new)
        self.seen = max([self.seen, *offsets])
        assert self.ask("add_many", offsets, [offset % 100 for offset in offsets]) == len(new)

    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        if self.model:
            offset = data.draw(st.sampled_from(sorted(self.model)))
            del self.model[offset]
            assert self.ask("done", offset)

    @rule(data=st.data(), reverse=st.booleans())
    def done_many(self, data: st.DataObject, reverse: bool) -> None:
        if self.model:
            known = sorted(self.model, reverse=reverse)
            offsets = known[: data.draw(st.integers(1, len(known)))]
            for offset in offsets:
                del self.model[offset]
            assert self.ask("done_many", offsets) == len(offsets)

    @rule(offset=st.integers(-(2**63), 2**63 - 1) | st.integers(-1, 200))
    def done_stray(self, offset: int) -> None:
        assert self.ask("__contains__", offset) == (offset in self.model)
        assert self.ask("done", offset) == (self.model.pop(offset, None) is not None)

    @rule()
    def clear(self) -> None:
        assert self.ask("clear") == len(self.model)
        self.model.clear()
        self.seen = -1

    @invariant()
    def agrees(self) -> None:
        lowest = min(self.model, default=-1)
        span = max(self.model, default=0) - min(self.model, default=0)
        size = sum(self.model.values())
        committed = lowest if self.model else self.seen + 1 if self.seen >= 0 else -1
        for queue in self.queues:
            assert (queue.count, len(queue), queue.bytes, queue.span) == (len(self.model), len(self.model), size, span)
            assert (queue.lowest, queue.commit_offset, queue.highest_seen) == (lowest, committed, self.seen)
            assert queue.offsets() == sorted(self.model)

    @invariant()
    def decides(self) -> None:
        span = max(self.model, default=0) - min(self.model, default=0)
        limits = (10, 2000, 50)
        held = (len(self.model), sum(self.model.values()), span)
        expected = next(
            (code for code, (have, limit) in enumerate(zip(held, limits, strict=True), 1) if have > limit), 0
        )
        assert self.ask("over", *limits) == expected


@dataclass(frozen=True)
class Entry:
    ledger: int
    entry: int
    num_messages: int
    ack_set: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Message:
    entry: Entry
    batch_index: int


@dataclass
class Known:
    """What the model remembers of one entry."""

    size: int
    left: set[int]
    whole: bool = False
    waits: bool = False
    forgotten: bool = False

    @property
    def done(self) -> bool:
        return self.whole or not self.left


@dataclass
class Model:
    known: dict[tuple[int, int], Known] = field(default_factory=dict)
    group: list[tuple[int, int]] = field(default_factory=list)
    told: list[Any] = field(default_factory=list)


def words(left: set[int]) -> tuple[int, ...]:
    bits = sum(1 << index for index in left)
    count = (bits.bit_length() + 63) // 64
    raw = bits.to_bytes(8 * count, "little")
    return tuple(int.from_bytes(raw[8 * word : 8 * word + 8], "little", signed=True) for word in range(count))


places = st.tuples(st.integers(0, 1), st.integers(0, 6))


def size_of(entry: int) -> int:
    return (1, 2, 63, 64, 65, 130, 3)[entry]


class AckSetMachine(RuleBasedStateMachine):
    """Against sets of indexes."""

    @initialize(limit=st.sampled_from([1, 2, 5, 1000]), batch_index=st.booleans())
    def open(self, limit: int, batch_index: bool) -> None:
        self.sets = [twin.AckSet(limit, batch_index=batch_index) for twin in TWINS]
        self.limit = limit
        self.batch_index = batch_index
        self.model = Model()
        self.position = (-1, -1, -1)
        self.size = 0
        self.moved = False

    def ask(self, name: str, *arguments: Any) -> Any:
        return same([getattr(one, name)(*arguments) for one in self.sets])

    def signal(self, joined: bool, armed: bool) -> int:
        if len(self.model.group) >= self.limit or (self.moved and self.limit == 1):
            return 2
        return 1 if joined and not armed else 0

    def acked(self, key: tuple[int, int], index: int, size: int, start: set[int] | None = None) -> int:
        """What the model expects `add` to answer."""
        armed = self.moved or bool(self.model.group)
        known = self.model.known.get(key)
        if known is None:
            known = self.model.known[key] = Known(size, set(range(size)) if start is None else start)
        elif known.done or (index >= 0 and index not in known.left):
            return self.signal(False, armed)
        if index < 0:
            known.whole = True
        known.left.discard(index)
        joins = not known.waits and (known.done or self.batch_index)
        if joins:
            known.waits = True
            self.model.group.append(key)
        return self.signal(joins, armed)

    @rule(place=places, data=st.data())
    def add(self, place: tuple[int, int], data: st.DataObject) -> None:
        size = size_of(place[1])
        index = data.draw(st.integers(0, size - 1))
        gone = data.draw(st.none() | st.sets(st.integers(0, size - 1)))
        left = None if not gone else set(range(size)) - gone
        ack_set = None if left is None else words(left)
        if ack_set == ():
            ack_set, left = None, None  # nothing left would not have been sent
        expected = self.acked(place, index, size, left)
        assert self.ask("add", Message(Entry(*place, size, ack_set), index)) == expected

    @rule(place=places)
    def add_whole(self, place: tuple[int, int]) -> None:
        expected = self.acked(place, -1, 0)
        assert self.ask("add_id", *place) == expected

    @rule(place=places, data=st.data())
    def add_many(self, place: tuple[int, int], data: st.DataObject) -> None:
        size = size_of(place[1])
        indexes = data.draw(st.lists(st.integers(0, size - 1), max_size=8)) if data.draw(st.booleans()) else range(size)
        entry = Entry(*place, size)
        expected = max([self.acked(place, index, size) for index in indexes], default=0)
        assert self.ask("add_many", [Message(entry, index) for index in indexes]) == expected

    @rule(place=places, data=st.data())
    def add_cumulative(self, place: tuple[int, int], data: st.DataObject) -> None:
        size = size_of(place[1])
        index = data.draw(st.integers(-1, size - 1))
        whole = index in (-1, size - 1)
        position = (*place, 10**9) if whole else (*place, index)
        if not whole and not self.batch_index:
            position = (place[0], place[1] - 1, 10**9)
        armed = self.moved or bool(self.model.group)
        forward = position > self.position
        if forward:
            self.position, self.size, self.moved = position, size, True
        assert self.ask("add_cumulative", Message(Entry(*place, size), index)) == self.signal(forward, armed)

    @rule()
    def take(self) -> None:
        expected: list[Any] = []
        for key in self.model.group:
            known = self.model.known[key]
            known.waits = False
            expected.append(key if known.done else (*key, words(known.left)))
            if known.done or known.forgotten:
                del self.model.known[key]
        self.model.group = []
        assert self.ask("take") == expected

    @rule()
    def take_cumulative(self) -> None:
        ledger, entry, index = self.position
        if not self.moved:
            expected: Any = None
        elif index == 10**9:
            expected = (ledger, entry)
        else:
            expected = (ledger, entry, words(set(range(index + 1, self.size))))
        self.moved = False
        assert self.ask("take_cumulative") == expected

    @rule(place=places, index=st.integers(-1, 140))
    def covers(self, place: tuple[int, int], index: int) -> None:
        known = self.model.known.get(place)
        expected = (*place, 10**9 if index < 0 else index) <= self.position
        if known is not None and not expected:
            cleared = known.whole or index not in known.left
            expected = known.done if index < 0 else index < max(known.size, 1) and cleared
        assert self.ask("covers", *place, index) == expected

    @rule()
    def forget(self) -> None:
        self.model.known = {key: known for key, known in self.model.known.items() if known.waits}
        for known in self.model.known.values():
            known.forgotten = True
        self.ask("forget")

    @rule()
    def clear(self) -> None:
        self.model = Model()
        self.position = (-1, -1, -1)
        self.moved = False
        self.ask("clear")

    @invariant()
    def counted(self) -> None:
        assert self.ask("__len__") == len(self.model.group)


TestCredits = CreditsMachine.TestCase
TestCredits.settings = MANY_STEPS
TestOutstanding = OutstandingMachine.TestCase
TestOutstanding.settings = MANY_STEPS
TestAckSet = AckSetMachine.TestCase
TestAckSet.settings = MANY_STEPS
