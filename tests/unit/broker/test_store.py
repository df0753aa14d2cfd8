"""Logs: numbered records in blocks that never move, read as few slices, trimmed like expired files."""

from __future__ import annotations

from array import array

import pytest

from mqclient.broker.store import LARGE, Log


def filled(count: int, size: int = 10, capacity: int = 64) -> Log:
    log = Log(capacity)
    for number in range(count):
        assert log.append(b"%0*d" % (size, number), 1000 + 10 * number) == number
    return log


def extend(log: Log, record: bytes, count: int) -> int:
    ends = array("I", [len(record) * (index + 1) for index in range(count)])
    return log.extend(record * count, ends, array("i", range(count)), array("q", [5000]) * count)


def joined(log: Log, start: int, count: int, limit: int = 1 << 20) -> tuple[bytes, int]:
    views, following = log.read(start, count, limit)
    return b"".join(views), following


@pytest.mark.parametrize(("start", "count"), [(0, 1), (0, 20), (3, 9), (5, 100), (19, 1), (7, 0)])
def test_reading_gives_the_records_in_order(start: int, count: int) -> None:
    log = filled(20)
    data, following = joined(log, start, count)
    numbers = range(start, min(20, start + count))
    assert data == b"".join(b"%010d" % number for number in numbers)
    assert following == max(start, min(20, start + count))


@pytest.mark.parametrize(("limit", "wanted"), [(1, 1), (10, 1), (19, 1), (20, 2), (65, 6), (1000, 20)])
def test_a_limit_of_bytes_but_one_record_at_least(limit: int, wanted: int) -> None:
    assert joined(filled(20), 0, 100, limit)[1] == wanted


def test_neighbours_share_a_slice() -> None:
    views, _ = filled(20).read(0, 20, 1 << 20)
    assert [len(view) // 10 for view in views] == [6, 6, 6, 2]


def test_slices_live_on_while_the_log_grows() -> None:
    log = filled(1)
    (view,), _ = log.read(0, 1, 100)
    extend(log, b"x" * 10, 50)
    assert bytes(view) == b"0000000000"
    with pytest.raises(TypeError):
        view[0] = 1


def test_a_large_record_is_kept_as_it_is_where_a_block_would_begin() -> None:
    log, large = Log(), b"z" * LARGE
    assert log.append(b"small", 1000) == 0
    assert [log.append(large, 2000), log.append(large, 2000), log.append(b"tiny", 3000)] == [1, 2, 3]
    assert log.record(1).obj is large
    assert joined(log, 0, 9) == (b"small" + 2 * large + b"tiny", 4)
    assert log.append(large, 4000) == 4  # there is room behind the small one
    assert log.record(4).obj is not large
    log.trim(2)
    assert (log.first, log.bytes, bytes(log.record(2))) == (2, 2 * LARGE + 4, large)


def test_a_record_beyond_a_segment_gets_one_of_its_own() -> None:
    log = filled(2)
    assert log.append(b"y" * 1000, 2000) == 2
    assert bytes(log.record(2)) == b"y" * 1000
    assert (log.size(2), log.size(0), log.time(2)) == (1000, 10, 2000)


def test_times() -> None:
    log = filled(5)  # at 1000, 1010, ... 1040
    assert [log.at_or_after(when) for when in (0, 1010, 1011, 1040, 1041)] == [0, 1, 2, 4, 5]
    assert [log.at_or_before(when) for when in (0, 1010, 1019, 9999)] == [0, 1, 1, 4]


def test_trimming_forgets_whole_segments_and_hides_the_rest() -> None:
    log = filled(20)
    log.trim(8)
    assert (log.first, log.next, len(log), log.bytes) == (8, 20, 12, 140)
    assert joined(log, 8, 100) == (b"".join(b"%010d" % number for number in range(8, 20)), 20)
    assert (log.at_or_after(0), log.time(8)) == (8, 1080)
    assert list(log.marks()) == [log.mark(number) for number in range(8, 20)]
    log.trim(3)  # never backwards
    assert log.first == 8
    log.trim(100)
    assert (log.first, len(log), log.bytes) == (20, 0, 0)
    assert log.append(b"z", 9000) == 20
    assert bytes(log.record(20)) == b"z"
    assert log.time(20) == 9000


def test_bytes_are_found_newest_first_in_whole_records_only() -> None:
    log = Log(capacity=64)
    for record in (b"ab needle", b"needle needle", b"nee", b"dle", b"x" * 100, b"last needle"):
        log.append(record, 1)
    assert list(log.search(b"needle")) == [5, 1, 0]
    log.trim(1)
    assert list(log.search(b"needle")) == [5, 1]
    assert list(log.search(b"nothing")) == []


@pytest.mark.parametrize("before", [0, 1, 6, 7])
@pytest.mark.parametrize("count", [1, 3, 6, 7, 50])
def test_a_block_of_records_is_as_good_as_one_by_one(before: int, count: int) -> None:
    log = filled(before)
    assert extend(log, b"abcdefghij", count) == before
    assert log.append(b"k" * 10, 6000, -9) == before + count
    numbers = [b"%010d" % number for number in range(before)]
    assert joined(log, 0, 100) == (b"".join((*numbers, b"abcdefghij" * count, b"k" * 10)), before + count + 1)
    assert [log.mark(before + index) for index in range(count)] == list(range(count))
    assert (log.mark(before + count), log.time(before)) == (-9, 5000)
    assert bytes(log.record(before + count - 1)) == b"abcdefghij"
    assert log.bytes == 10 * (before + count + 1)


def test_no_records_are_no_block() -> None:
    log = filled(2)
    assert extend(log, b"", 0) == 2
    assert log.next == 2


def test_a_log_lists_itself_when_something_is_unsaved() -> None:
    log = Log()
    unsaved: list[Log] = []
    log.unsaved = unsaved.append
    log.append(b"a", 1)
    extend(log, b"b", 2)
    assert unsaved == [log]
    unsaved.clear()
    log.saved = log.next
    extend(log, b"c", 1)
    extend(log, b"c", 1)
    assert unsaved == [log]


@pytest.mark.parametrize("start", [0, 3, 6, 7, 19, 20])
def test_a_block_holds_all_from_there_on_for_another_log(start: int) -> None:
    log = filled(20)
    times, marks, ends, views, size = log.block(start)
    assert (size, len(times), len(marks), len(ends)) == (10 * (20 - start), *[20 - start] * 3)
    other = Log()
    other.begin(start)
    assert other.extend(b"".join(views), ends, marks, times) == start
    assert joined(other, start, 20) == joined(log, start, 20)
    assert [other.time(number) for number in range(start, 20)] == [log.time(number) for number in range(start, 20)]


def test_marks_of_what_is_gone() -> None:
    log = filled(20)
    log.append(b"m" * 10, 5000, 7)
    log.trim(20)
    assert (log.mark(0), log.mark(20), log.saved) == (0, 7, 20)
