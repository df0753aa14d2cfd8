"""Makes the cases of ../allocation.json and has RocketMQ's own Java classes answer them.

Needs a JDK and a folder with rocketmq-client 5.5.0 and what it depends on (`mvn dependency:copy-dependencies`):

    python record.py FOLDER_WITH_JARS > ../allocation.json
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

SEED = 20261118
HERE = Path(__file__).parent
SIMPLE = ("averagely", "averagely_by_circle")
Case = dict[str, Any]


def some_queues(chance: random.Random, most: int, brokers: list[str]) -> list[list[Any]]:
    topic = chance.choice(["orders", "%RETRY%billing", "заказы", "t" * chance.randint(1, 60)])
    count = chance.randint(1, most)
    queues = [[topic, brokers[place % len(brokers)], place // len(brokers)] for place in range(count)]
    return sorted(queues)


def some_members(chance: random.Random, most: int) -> list[str]:
    """Ids as clients make them; some lists hold an id twice."""
    members = [f"10.0.{chance.randint(0, 3)}.{chance.randint(1, 99)}@{chance.randint(1, 99999)}#7" for _ in range(most)]
    members = members[: chance.randint(1, most)] + chance.choice([[], [], ["ключ@é😀"]])
    repeats = chance.choice([0, 0, 1, 3])
    return sorted(members + [chance.choice(members) for _ in range(repeats)])


def some_own(chance: random.Random, members: list[str]) -> str:
    return "10.9.9.9@absent" if chance.random() < 0.06 else chance.choice(members)


def with_options(chance: random.Random, case: Case, rule: str) -> Case:
    if rule == "by_config":
        case["configured"] = case["queues"][: chance.randint(0, 3)]
    elif rule == "machine_room":
        case["rooms"] = chance.sample(["r1", "r2", "r3", "", "nowhere"], chance.randint(1, 3))
    elif rule == "consistent_hash":
        case["virtual_nodes"] = chance.choice([10, 10, 10, 1, 0, 3, 33])
        custom = chance.choice([None, None, "java", "java & 15"])
        if custom:
            case["hash"] = custom
    return case


def usual(chance: random.Random, rule: str) -> Case:
    brokers = [f"broker-{letter}" for letter in "abc"[: chance.randint(1, 3)]]
    if rule == "machine_room":
        brokers = ["r1@a", "r1@b@", "r2@a", "r2@a@b", "@a", "r3@", "plain", "r3@x"][: chance.randint(1, 8)]
    members = some_members(chance, chance.choice([3, 8, 20]))
    most = chance.choice([len(members), 5, 40, 120])
    case = {"rule": rule, "own": some_own(chance, members), "queues": some_queues(chance, most, brokers)}
    return with_options(chance, {**case, "members": members}, rule)


def large(chance: random.Random) -> Case:
    members = [f"172.16.{number // 8}.{number % 8}@{chance.getrandbits(40)}" for number in range(150)]
    queues = [["large", f"broker-{number // 100:02}", number % 100] for number in range(1500)]
    case: Case = {"rule": "consistent_hash", "own": members[77], "queues": queues, "members": members}
    return {**case, "virtual_nodes": 10}


def nearby(chance: random.Random) -> Case:
    rooms = ["r1", "r2", "Ω", "\uffee", "😀"]
    brokers = [f"broker-{number}" for number in range(chance.randint(1, 6))]
    members = some_members(chance, 8)
    case: Case = {
        "rule": "machine_room_nearby",
        "inner": chance.choice([*SIMPLE, "consistent_hash"]),
        "own": some_own(chance, members),
        "queues": some_queues(chance, 60, brokers),
        "members": members,
        "broker_room": {broker: chance.choice(rooms) for broker in brokers},
        "member_room": {member: chance.choice(rooms[: chance.randint(1, 5)]) for member in members},
    }
    if chance.random() < 0.1:
        case["broker_room"][brokers[0]] = ""
    if chance.random() < 0.1:
        del case["member_room"][members[-1]]
    return with_options(chance, case, case["inner"])


def wrong(rule: str) -> list[Case]:
    """Arguments that the rules refuse."""
    extra = {"rooms": ["r1"], "virtual_nodes": 10, "inner": "averagely", "broker_room": {}, "member_room": {}}
    good = {"rule": rule, "own": "a", "queues": [["t", "r1@b", 0]], "members": ["a"], "configured": [], **extra}
    return [{**good, "own": ""}, {**good, "queues": []}, {**good, "members": []}, {**good, "own": "absent"}]


def cases() -> list[Case]:
    chance = random.Random(SEED)
    rules = [*SIMPLE, "by_config", "machine_room", "consistent_hash"]
    found = [usual(chance, rule) for rule in rules for _ in range(5 if rule == "by_config" else 40)]
    found += [large(chance), *(nearby(chance) for _ in range(50))]
    found += [case for rule in (*rules, "machine_room_nearby") for case in wrong(rule)]
    return [*found, {**wrong("consistent_hash")[3], "virtual_nodes": -1}]


def main() -> None:
    jars = f"{sys.argv[1]}/*"
    run = ["java", "-cp", jars, str(HERE / "Record.java")]
    answer = subprocess.run(run, input=json.dumps(cases()), capture_output=True, text=True, check=True).stdout
    about = {
        "made_by": "the strategies of org.apache.rocketmq:rocketmq-client:5.5.0, asked by allocation_record/record.py",
        "seed": SEED,
        "share": "places in `queues`, in the order of Java's answer; an `error` is the text of Java's exception",
    }
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in json.loads(answer))
    print(f'{{"about": {json.dumps(about, indent=1)},\n"cases": [\n{lines}\n]}}')


if __name__ == "__main__":
    main()
