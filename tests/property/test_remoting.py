"""The native remoting codec and its pure twin give the same for everything: valid, damaged, cut off and sliced."""

from __future__ import annotations

import json
import zlib
from functools import partial
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mqclient.errors import ConfigError, ProtocolError
from tests.property.twins import compared, damaged, flips, outcome, twins_of

TWINS = twins_of("remoting")
ONE = TWINS[0]
DIGEST = import_module("mqclient._pure.digest")

settings.register_profile("unhurried", deadline=None)  # a busy machine is no finding
settings.load_profile("unhurried")

VECTORS = Path(__file__).parents[1] / "vectors" / "rocketmq"
FRAME_FACTS = (
    *("code", "flag", "opaque", "version", "language", "remark", "serialize", "body", "fields"),
    *("is_response", "is_oneway"),
)
MESSAGE_FACTS = (
    *("body", "topic", "queue_id", "offset", "physical_offset", "flag", "sys_flag", "born_at", "stored_at"),
    *("born_host", "store_host", "attempts", "prepared_transaction_offset", "body_crc", "size", "stored_size"),
    *("compressed", "compression", "tag", "key", "keys", "properties_text", "message_id"),
    *("offset_id", "transaction_id", "queue", "view", "properties"),
)
BATCH_FACTS = ("size", "scanned", "first_offset", "last_offset", "offsets", "sizes", "queue")

int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
words = st.text(st.characters(codec="utf-8", exclude_characters="\x01\x02"), min_size=1, max_size=12)
plain_words = st.text("abcXYZ_09 -", min_size=1, max_size=8)
fields = st.dictionaries(st.one_of(plain_words, words), st.text(max_size=20), max_size=8)
names = st.sampled_from(["TAGS", "KEYS", "UNIQ_KEY", "RETRY_TOPIC", "WAIT", "color", "n"])
properties = st.dictionaries(st.one_of(names, words), st.one_of(plain_words, words), max_size=8)
hosts = st.tuples(st.sampled_from(["10.0.0.9", "255.1.2.3", "::1", "2001:db8::7", "::ffff:1.2.3.4"]), int32)


same = partial(compared, TWINS)


# ---------------------------------------------------------------------------------------------------------- frames


def frame_facts(frame: Any) -> dict[str, Any]:
    picked = frame.pick(("a", "b", "queueOffset", "x", "", "\xe4"))
    early = [frame.field(name, "-") for name in ("a", "b", "queueOffset", "x", "", "\xe4")]  # before `fields` is made
    facts = {name: getattr(frame, name) for name in FRAME_FACTS} | {"early": early}
    return facts | {
        "one by one": {name: frame.field(name) for name in frame.fields},
        "none": frame.field("nonesuch", "-"),
        "picked": picked,
    }


def fed(twin: ModuleType, parts: list[bytes], max_frame: int = 16 * 1024 * 1024) -> Any:
    reader = twin.FrameReader(max_frame)
    frames = [frame_facts(frame) for part in parts for frame in reader.feed(part)]
    return frames, reader.error is None, reader.pending


@given(
    st.integers(-40000, 300000),
    int32,
    st.integers(0, 3),
    st.one_of(st.none(), fields),
    st.binary(max_size=40),
    st.one_of(st.none(), st.text(max_size=20)),
    st.sampled_from(["PYTHON", "JAVA", "OTHER", "klingon", ""]),
    st.integers(0, 33000),
    st.sampled_from([0, 1]),
)
def test_any_command_goes_there_and_back(
    code: int,
    opaque: int,
    flag: int,
    ext: dict[str, str] | None,
    body: bytes,
    remark: str | None,
    language: str,
    version: int,
    form: int,
) -> None:
    arguments: dict[str, Any] = {"flag": flag, "fields": ext, "remark": remark, "language": language}
    data = same(lambda twin: twin.encode_frame(code, opaque, body=body, version=version, serialize=form, **arguments))
    if data is ConfigError:
        assert form == ONE.ROCKETMQ or any("\ud800" <= c <= "\udfff" for c in str(ext) + str(remark))
        return
    (facts,), good, pending = same(lambda twin: fed(twin, [data]))
    assert good
    assert pending == 0
    assert (facts["code"], facts["opaque"], facts["flag"], facts["body"]) == (code, opaque, flag, body)
    if form == ONE.JSON:
        assert (facts["fields"], facts["remark"]) == (ext or {}, remark)
    else:
        assert facts["fields"] == {name: value for name, value in (ext or {}).items() if name and value}


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=6)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=12,
)
known = st.sampled_from(["code", "opaque", "flag", "version", "language", "remark", "extFields"])
headers = st.lists(st.tuples(st.one_of(known, st.text(max_size=5)), json_values), max_size=8)


def framed(header: bytes, form: int = 0, body: bytes = b"") -> bytes:
    mark = (form << 24 | len(header)).to_bytes(4, "big")
    return (4 + len(header) + len(body)).to_bytes(4, "big") + mark + header + body


@given(
    headers,
    st.dictionaries(st.text(max_size=4), json_values, max_size=4),
    st.sampled_from([(",", ":"), (" , ", "\t:\n"), (",\r\n", " : ")]),
    st.booleans(),
    st.booleans(),
)
def test_any_json_header_is_read_alike(
    members: list[tuple[str, Any]], ext: dict[str, Any], marks: tuple[str, str], ascii_only: bool, usual: bool
) -> None:
    """Members may repeat, be of a wrong kind or nest; the last of a name counts."""
    if usual:
        members = [*members, ("code", 7), ("extFields", ext), ("opaque", "12")]

    def text(value: Any) -> str:
        return json.dumps(value, ensure_ascii=ascii_only, separators=marks)

    header = "{" + marks[0].join(text(name) + marks[1] + text(value) for name, value in members) + "}"
    same(lambda twin: fed(twin, [framed(header.encode("utf-8", "surrogatepass"))]))


@pytest.mark.parametrize(
    "header",
    [
        '{"code":1,"extFields":{"a":"1","a":null}}',
        '{"code":1,"extFields":{"a":null,"a":"1"}}',
        '{"c\\u006fde":1,"extFields":{"\\u0061":1.50e+7,"b":-0,"c":true,"d":[1, {"e":"\\""}]}}',
        '{"code":"\\u0031\\u0032"}',
        '{"code":-2147483648,"opaque":2147483648}',
        '{"code":01}',
        '{"code":1.0}',
        '{"code":NaN}',
        '{"code":1,"remark":"\\ud83d\\ude00 \\ud83d \\udc00 \\ud83d\\u0041"}',
        '{"code":1,"remark":"\\ud83d\\u00"}',
        '{"code":1,"remark":"tab\there"}',
        '{"code":1,"remark":12,"language":null}',
        '{"code":1,"extFields":[]}',
        '{"code":1,"extFields":"{}"}',
        '{"code":1,"extFields":{"a":"1"},"extFields":null}',
        '{"code":1,"extFields":null}',
        '{"code":1,"x":' + "[" * 32 + "]" * 32 + "}",
        '{"code":1,"x":' + "[" * 33 + "]" * 33 + "}",
        '{"code":1,"extFields":{"x":' + "[" * 31 + "]" * 31 + "}}",
        '{"code":1,"extFields":{"x":' + "[" * 32 + "]" * 32 + "}}",
        '{"code":1,"x":' + "[" * 100_000,
        '{"code":1,"x":' + "9" * 5000 + "}",
        '{"code":1}x',
        ' \n{ "code" : 1 } \t',
        '{"code":1,}',
        '{"code":1 "flag":2}',
        "{}",
        "",
        "[]",
        "\ufeff{}",
    ],
)
def test_odd_json_headers_are_read_alike(header: str) -> None:
    same(lambda twin: fed(twin, [framed(header.encode())]))


@given(st.binary(max_size=60), st.integers(0, 2), st.binary(max_size=4))
def test_any_bytes_as_a_header_are_read_alike(header: bytes, form: int, body: bytes) -> None:
    same(lambda twin: fed(twin, [framed(header, form, body)]))


FRAMES = sorted(path.read_bytes() for path in VECTORS.glob("*.frame.bin") if path.stat().st_size < 2000)


@given(st.lists(st.sampled_from(FRAMES), min_size=1, max_size=3), flips)
def test_damaged_frames_are_read_alike(frames: list[bytes], places: list[tuple[int, int]]) -> None:
    data = damaged(b"".join(frames), places)
    same(lambda twin: fed(twin, [data], 100_000))


@given(st.lists(st.sampled_from(FRAMES), min_size=1, max_size=6), st.lists(st.integers(0, 6000), max_size=8))
def test_slicing_changes_nothing(frames: list[bytes], cuts: list[int]) -> None:
    data = b"".join(frames)
    places = [0, *sorted(cut % len(data) for cut in cuts), len(data)]
    parts = [data[one:two] for one, two in pairwise(places)]
    assert same(lambda twin: fed(twin, parts)) == same(lambda twin: fed(twin, [data]))


@pytest.mark.parametrize("data", FRAMES[:: max(1, len(FRAMES) // 12)])
def test_frame_cut_at_every_byte_waits_for_the_rest(data: bytes) -> None:
    whole = same(lambda twin: fed(twin, [data]))
    for cut in range(len(data)):
        frames, good, pending = same(lambda twin, cut=cut: fed(twin, [data[:cut]]))  # type: ignore[misc]
        assert (frames, good, pending) == ([], True, cut)
        assert same(lambda twin, cut=cut: fed(twin, [data[:cut], data[cut:]])) == whole  # type: ignore[misc]


@pytest.mark.parametrize("form", [0, 1])
@given(
    st.text(max_size=6), st.text(max_size=6), int32, int64, properties, st.binary(max_size=30), fields, st.booleans()
)
def test_hot_requests_are_encoded_alike(
    form: int,
    group: str,
    topic: str,
    queue_id: int,
    number: int,
    mapping: dict[str, str],
    body: bytes,
    extra: dict[str, str],
    some: bool,
) -> None:
    text = same(lambda twin: twin.encode_properties(mapping))
    extra = {f"x{name}": value for name, value in extra.items()}
    send: dict[str, Any] = {"born_at": number, "batch": some, "oneway": some, "extra": extra, "serialize": form}
    if some:
        send |= {"broker": topic, "max_reconsume_times": 16, "code": 320}
    data = same(lambda twin: twin.encode_send(7, group, topic, queue_id, text, body, **send))
    if data is not ConfigError:
        (facts,), good, _ = same(lambda twin: fed(twin, [data]))
        assert good
        assert (facts["body"], facts["is_oneway"]) == (body, some)
        assert facts["fields"].get("i", "") == text.decode()
    pull: dict[str, Any] = {"commit_offset": number, "extra": extra, "serialize": form}
    if some:
        pull |= {"subscription": topic, "expression_type": "TAG", "max_bytes": 9, "broker": group}
    same(lambda twin: twin.encode_pull(7, group, topic, queue_id, number, **pull))


# --------------------------------------------------------------------------------------------------------- messages


def message_facts(message: Any) -> dict[str, Any]:
    found = {name: message.property(name, "-") for name in ("TAGS", "n", "a\x01b", "", "\ufffd", "nonesuch")}
    facts = {name: getattr(message, name) for name in MESSAGE_FACTS}  # properties last: what is before must not need it
    return facts | {"topic again": message.topic, "found": found}


def batch_facts(batch: Any) -> Any:
    columns = outcome(batch.columns), outcome(lambda: batch.columns(None, [batch, batch[1:]]))
    return (
        {name: getattr(batch, name) for name in BATCH_FACTS},
        [message_facts(message) for message in batch],
        columns,
    )


def decompress(kind: int, view: memoryview, limit: int) -> bytes:
    if kind != 3:
        raise ProtocolError(f"kind {kind}")
    engine = zlib.decompressobj()
    try:
        data = engine.decompress(view, limit)
    except zlib.error as error:
        raise ProtocolError(str(error)) from error
    if engine.unconsumed_tail or not engine.eof:
        raise ProtocolError("too long, or cut off")
    return data


@st.composite
def batch_bodies(draw: st.DrawFn) -> bytes:
    builder = ONE.BatchBuilder()
    for _ in range(draw(st.integers(0, 4))):
        builder.add(draw(st.binary(max_size=20)), ONE.encode_properties(draw(properties)), draw(int32))
    sealed: bytes = builder.seal()
    return sealed


@st.composite
def stored_messages(draw: st.DrawFn) -> bytes:
    """One stored message of any variant."""
    body = draw(st.binary(max_size=40))
    sys_flag = draw(st.sampled_from([0, 0, 2, 4, 0xC, 0x40]))
    if draw(st.integers(0, 3)) == 0:
        sys_flag, body = 0xC0, draw(batch_bodies())
    if draw(st.integers(0, 3)) == 0:
        sys_flag |= 1 | draw(st.sampled_from([0, 0x300, 0x300, 0x100]))
        body = zlib.compress(body)
    topic = draw(st.sampled_from(["T", "orders", "%RETRY%g", "Käse", "x" * 128, ""]))
    numbers = {name: draw(int32) for name in ("queue_id", "flag", "attempts")}
    for name in ("offset", "physical_offset", "born_at", "stored_at", "prepared_transaction_offset"):
        numbers[name] = draw(int64)
    places = {"born_host": draw(hosts), "store_host": draw(hosts)}
    text = draw(texts)
    data = same(lambda twin: twin.encode_message(body, topic, properties=text, sys_flag=sys_flag, **numbers, **places))
    assert isinstance(data, bytes)
    return data


texts = st.one_of(
    properties.map(lambda mapping: ONE.encode_properties(mapping)),
    st.lists(st.sampled_from([b"TAGS", b"KEYS", b"a b", b"\x01", b"\x02", b"\x01x\x02", b"\xff", b"n"])).map(b"".join),
    st.binary(max_size=60),
)
bodies = st.lists(stored_messages(), max_size=4).map(b"".join)
tag_sets = st.one_of(st.none(), st.sets(st.one_of(plain_words, words), max_size=2), st.just(["n", "a b", "x"]))


@given(bodies, tag_sets, st.booleans(), st.booleans(), st.sampled_from([1 << 20, 10]), st.booleans())
def test_messages_are_decoded_alike(data: bytes, tags: Any, check: bool, expand: bool, limit: int, retry: bool) -> None:
    options = {"check_crc": check, "decompress": decompress if expand else None, "limit": limit, "queue": "q"}
    same(lambda twin: batch_facts(twin.decode_messages(data, tags, retry_topic=retry, **options)))


@given(bodies, flips, st.sampled_from([None, decompress]), st.sampled_from([0, 5, 2**63 - 1, -(2**63)]))
def test_damaged_messages_are_decoded_alike(
    data: bytes, places: list[tuple[int, int]], expand: Any, delta: int
) -> None:
    same(lambda twin: batch_facts(twin.decode_messages(damaged(data, places), decompress=expand, offset_delta=delta)))


@given(bodies)
@settings(max_examples=30)
def test_messages_cut_at_every_byte_are_refused_alike(data: bytes) -> None:
    for cut in range(len(data)):
        same(lambda twin, cut=cut: batch_facts(twin.decode_messages(data[:cut])))  # type: ignore[misc]


@given(st.binary(max_size=120))
def test_any_bytes_are_decoded_alike(data: bytes) -> None:
    same(lambda twin: batch_facts(twin.decode_messages(data)))
    same(lambda twin: twin.split_batch(data))
    same(lambda twin: twin.decode_properties(data))


@given(bodies, st.slices(4))
def test_slices_are_batches(data: bytes, part: slice) -> None:
    batch = outcome(lambda: ONE.decode_messages(data))
    if batch is not ProtocolError:
        facts = same(lambda twin: batch_facts(twin.decode_messages(data)[part]))
        assert facts[1] == [message_facts(message) for message in batch][part]


@given(batch_bodies(), flips)
def test_batch_bodies_are_split_alike(data: bytes, places: list[tuple[int, int]]) -> None:
    elements = same(lambda twin: twin.split_batch(data))
    builders = [twin.BatchBuilder() for twin in TWINS]
    for flag, body, text in elements:
        assert len({builder.add(body, text, flag) for builder in builders}) == 1
    assert [(builder.count, builder.size, builder.seal()) for builder in builders] == [
        (len(elements), len(data), data)
    ] * len(builders)
    same(lambda twin: twin.split_batch(damaged(data, places)))


places_in_log = st.one_of(st.integers(0, 1000), int64, st.just(2**63 - 2))


@given(
    batch_bodies(), flips, st.sampled_from(["T", "Käse", "x" * 128]), st.lists(int32, min_size=2, max_size=2), st.data()
)
def test_batch_bodies_are_stored_alike(
    data: bytes, places: list[tuple[int, int]], topic: str, numbers: list[int], draw: st.DataObject
) -> None:
    options = {"queue_id": numbers[0], "sys_flag": numbers[1]}
    options |= {name: draw.draw(places_in_log) for name in ("offset", "physical_offset", "born_at", "stored_at")}
    hosts_drawn = {"born_host": draw.draw(hosts), "store_host": draw.draw(hosts)}
    for body in (data, damaged(data, places)):
        same(lambda twin, body=body: twin.store_batch(body, topic, **options, **hosts_drawn))  # type: ignore[misc]
        same(lambda twin, body=body: twin.is_timed(body))  # type: ignore[misc]


@given(batch_bodies(), st.integers(0, 100), st.integers(0, 10**6))
def test_a_stored_batch_is_its_elements_stored_one_by_one(data: bytes, offset: int, physical: int) -> None:
    records, ends, tags = same(lambda twin: twin.store_batch(data, "T", offset=offset, physical_offset=physical))
    place, codes = 0, []
    for index, (flag, body, text) in enumerate(ONE.split_batch(data)):
        numbers = {"flag": flag, "offset": offset + index, "physical_offset": physical + place}
        record = ONE.encode_message(body, "T", properties=text, **numbers)
        assert records[place : place + len(record)] == record
        place += len(record)
        assert memoryview(ends).cast("I")[index] == place
        codes.append(DIGEST.java_string_hash(ONE.decode_properties(text).get("TAGS", "")))
    assert (len(records), memoryview(tags).cast("i").tolist()) == (place, codes)


@given(batch_bodies(), hosts, places_in_log)
def test_ids_of_a_stored_batch_are_those_of_its_messages(data: bytes, host: tuple[str, int], place: int) -> None:
    _, ends, _ = ONE.store_batch(data, "T")
    places = [place, *(place + end for end in memoryview(ends).cast("I"))]
    ids = same(lambda twin: twin.offset_ids(*host, place, ends))
    if ids is not ConfigError:
        assert ids == ",".join(ONE.offset_id(*host, one) for one in places[:-1])
    else:
        assert places[-1] >= 2**63


@given(batch_bodies())
@settings(max_examples=30)
def test_batch_bodies_cut_at_every_byte_are_refused_alike(data: bytes) -> None:
    for cut in range(len(data)):
        same(lambda twin, cut=cut: twin.store_batch(data[:cut], "T"))  # type: ignore[misc]
        same(lambda twin, cut=cut: twin.is_timed(data[:cut]))  # type: ignore[misc]


@given(
    st.lists(st.tuples(int32, st.binary(max_size=20), st.binary(max_size=10)), max_size=5),
    st.integers(-1, 6),
    st.integers(0, 120),
    st.integers(0, 4),
    st.booleans(),
)
def test_many_are_added_alike(
    rows: list[tuple[int, bytes, bytes]], start: int, max_size: int, max_count: int, flagged: bool
) -> None:
    rows = [(flag if flagged else 0, body, text) for flag, body, text in rows]

    def added(twin: ModuleType) -> Any:
        builder = twin.BatchBuilder()
        builder.add(b"first")
        flags = [flag for flag, _, _ in rows] if flagged else None
        texts = [text for _, _, text in rows]
        place = builder.add_many([body for _, body, _ in rows], texts, start, max_size, max_count, flags)
        return place, builder.count, builder.seal()

    answer = same(added)
    if answer is not ConfigError:
        place, count, body = answer
        assert ONE.split_batch(body) == [(0, b"first", b""), *rows[start:place]]
        assert count <= max(1, max_count)
        assert count == 1 or len(body) <= max_size


@given(texts)
def test_properties_are_decoded_alike(text: bytes) -> None:
    mapping = same(lambda twin: twin.decode_properties(text))
    again = same(lambda twin: twin.decode_properties(twin.encode_properties(mapping)))
    assert again == mapping or (again is ConfigError and any("\x01" in value for value in mapping.values()))


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3))
@example({"a": "x" * 32764})
@example({"a": "x" * 32765})
def test_properties_are_encoded_alike(mapping: dict[str, str]) -> None:
    same(lambda twin: twin.encode_properties(mapping))


# ---------------------------------------------------------------------------------------------------------- columns


@given(bodies, st.integers(0, 3), st.integers(0, 5), st.booleans(), st.booleans())
def test_columns_become_batches_alike(data: bytes, start: int, stop: int, unique: bool, wait: bool) -> None:
    batch = outcome(lambda: ONE.decode_messages(data))
    if batch is ProtocolError:
        return
    columns = batch.columns(("body", "tag", "keys", "flag", "properties"))
    reserved = {"TAGS", "KEYS"}

    def encoded(twin: ModuleType) -> Any:
        keys = twin.UniqueKeys(b"\x7f\0\0\1", 70000, 9) if unique else None
        return twin.encode_columns(columns, start, stop, unique=keys, now_ms=1_700_000_000_000, wait=wait)

    body = same(encoded)
    if body is ConfigError:
        values = [value for message in batch for value in message.properties.values()]
        assert not 0 <= start <= stop <= len(batch) or any("\x01" in value for value in values)
        return
    for (flag, content, text), message in zip(ONE.split_batch(body), list(batch)[start:stop], strict=True):
        assert (flag, content) == (message.flag, message.body)
        assert ("UNIQ_KEY" in ONE.decode_properties(text)) == (unique or "UNIQ_KEY" in message.properties)
        assert all(
            ONE.decode_properties(text)[name] == value
            for name, value in message.properties.items()
            if name not in reserved
        )


@given(
    st.lists(st.integers(-2, 40), min_size=1, max_size=5),
    st.binary(max_size=30),
    st.lists(st.integers(-2, 6), min_size=1, max_size=5),
    st.one_of(st.none(), st.binary(max_size=1)),
    st.integers(0, 4),
)
def test_columns_that_do_not_fit_are_refused_alike(
    ends: list[int], data: bytes, rows: list[int], validity: bytes | None, stop: int
) -> None:
    def packed(numbers: list[int]) -> bytes:
        return b"".join(number.to_bytes(4, "little", signed=True) for number in numbers)

    good = (None, packed(list(range(6))), b"xxxxx")
    text = (validity, packed(ends), data)
    same(lambda twin: twin.encode_columns({"body": text}, 0, stop))
    same(lambda twin: twin.encode_columns({"body": good, "tag": text}, 0, stop))
    entries = (None, packed(rows), packed(ends), data, good[1], good[2])
    same(lambda twin: twin.encode_columns({"body": good, "properties": entries}, 0, stop))
    same(lambda twin: twin.encode_columns({"body": good, "flag": (None, data)}, 0, stop))


# --------------------------------------------------------------------------------------------------------------- ids


@given(
    st.one_of(st.binary(min_size=4, max_size=4), st.binary(min_size=16, max_size=16), st.binary(max_size=5)),
    st.integers(0, 2**33),
    st.integers(-5, 2**34),
    st.lists(st.integers(0, 4_000_000_000_000), max_size=4),
)
def test_unique_keys_are_made_and_read_alike(ip: bytes, pid: int, salt: int, times: list[int]) -> None:
    def keys(twin: ModuleType) -> list[tuple[str, Any]]:
        made = twin.UniqueKeys(ip, pid, salt, 65530)
        texts = [made.next(now) for now in times]
        return [(text, twin.parse_unique_key(text)) for text in texts]

    answers = same(keys)
    if answers is not ConfigError:
        for counter, (_, parsed) in enumerate(answers, 65530):
            assert (*parsed[:3], parsed[4]) == (ip, pid & 0xFFFF, salt & 0xFFFFFFFF, counter & 0xFFFF)


@given(st.one_of(hosts.map(lambda host: host[0]), st.text(max_size=8)), st.integers(-(2**32), 2**32), st.integers())
def test_offset_ids_are_made_and_read_alike(host: str, port: int, offset: int) -> None:
    text = same(lambda twin: twin.offset_id(host, port, offset))
    if text is not ConfigError:
        assert same(lambda twin: twin.parse_offset_id(text))[1:] == (port, offset)


@given(st.one_of(st.text("0123456789abcdefABCDEFg ", min_size=30, max_size=33), st.text(max_size=40)))
def test_ids_that_are_none_are_refused_alike(text: str) -> None:
    same(lambda twin: twin.parse_offset_id(text))
    same(lambda twin: twin.parse_unique_key(text))
