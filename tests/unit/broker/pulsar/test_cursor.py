"""How far a subscription has come."""

from __future__ import annotations

from random import Random

from mqclient.broker.pulsar.cursor import Cursor, bits_of, words_of


def test_words_and_bits() -> None:
    for bits in (0, 1, 2**63, 2**64 - 1, 2**64, 2**130 + 5):
        assert bits_of(words_of(bits)) == bits
    assert words_of(2**64 - 1) == [-1]


def test_the_mark_follows_what_is_contiguous() -> None:
    cursor = Cursor(4)
    assert [cursor.ack(entry) for entry in (7, 6, 7, 3)] == [True, True, False, False]
    assert (cursor.mark, cursor.acked(7), cursor.acked(5), cursor.acked_between(5, 9)) == (4, True, False, 2)
    assert cursor.ack(5)
    assert cursor.mark == 7


def test_parts_of_a_batch() -> None:
    cursor = Cursor(-1)
    assert cursor.ack_part(0, 4, 0b1010) == 2
    assert (cursor.remaining(0, 4), cursor.partly(0)) == (0b1010, True)
    assert cursor.ack_part(0, 4, 0b1110) == 0  # told late: what is acknowledged stays so
    assert cursor.ack_part(0, 4, 0b0101) == 2
    assert (cursor.mark, cursor.partly(0), cursor.remaining(0, 4)) == (0, False, 0)


def test_cumulative_and_reset() -> None:
    cursor = Cursor(-1)
    cursor.ack(5)
    cursor.ack_part(3, 2, 0b10)
    cursor.ack_part(7, 2, 0b10)
    cursor.ack_up_to(4)
    assert (cursor.mark, cursor.partly(3), cursor.partly(7)) == (5, False, True)
    cursor.ack_up_to(2)
    assert cursor.mark == 5
    cursor.reset(0)
    assert (cursor.mark, cursor.acked(5), cursor.partly(7)) == (0, False, False)


def test_any_order_is_like_a_set() -> None:
    random = Random(1)
    for _ in range(50):
        cursor, acked = Cursor(-1), set()
        for entry in random.sample(range(40), 40):
            if random.random() < 0.1:
                cursor.ack_up_to(entry)
                acked |= set(range(entry + 1))
            assert cursor.ack(entry) == (entry not in acked)
            acked.add(entry)
            assert [cursor.acked(other) for other in range(40)] == [other in acked for other in range(40)]
            assert cursor.acked(cursor.mark) or cursor.mark == -1
            assert not cursor.acked(cursor.mark + 1)


def test_what_is_dumped_can_be_loaded() -> None:
    random, told = Random(4), []
    cursor = Cursor(-1)
    cursor.tell = lambda: told.append(cursor.mark)
    for _ in range(200):
        entry = random.randrange(60)
        cursor.ack(entry) if random.random() < 0.3 else cursor.ack_part(entry, 70, random.getrandbits(70))
        again = Cursor(5)
        again.load(cursor.dump())
        assert [again.remaining(at, 70) for at in range(60)] == [cursor.remaining(at, 70) for at in range(60)]
        assert (again.mark, again.dump()) == (cursor.mark, cursor.dump())
    moves = len(told)
    cursor.ack_up_to(70)
    cursor.reset(3)
    assert told[moves:] == [70, 3]
