"""The inputs of the jobs and their expected results, the same on every machine."""

import json
import random
from collections import Counter

TEXT_BYTES = 1_000_000
JSON_BYTES = 200_000
RECORDS = 10_000
REGIONS = 40
VOCABULARY = 5_000
PRIMES_BELOW_A_MILLION = 78_498


def text():
    """Returns a megabyte of words, some of which are much more frequent than others."""
    chance = random.Random(1)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    letter = lambda: letters[int(26 * chance.random() ** 2)]
    word = lambda: "".join(letter() for _ in range(2 + int(9 * chance.random())))
    words = ["the", "of", "and", "to"] + [word() for _ in range(VOCABULARY)]
    lines, size = [], 0
    while size < TEXT_BYTES:
        line = " ".join(words[int(len(words) * chance.random() ** 4)] for _ in range(12))
        lines.append(line)
        size += len(line) + 1
    return "\n".join(lines) + "\n"


def document():
    """Returns a JSON array of items."""
    chance = random.Random(2)
    items, size = [], 0
    while size < JSON_BYTES:
        item = {
            "id": len(items),
            "name": f"item {len(items)}",
            "active": chance.random() < 0.5,
            "amount": int(chance.random() * 1000),
            "tags": ["red", "green", "blue"][: int(chance.random() * 4)],
            "note": "a note with \"quotes\" and a line end\n",
        }
        items.append(item)
        size += len(json.dumps(item)) + 2
    return json.dumps(items)


def records():
    """Returns a JSON array of records of different regions."""
    chance = random.Random(3)
    record = lambda number: {
        "id": number,
        "region": f"region {int(REGIONS * chance.random() ** 2)}",
        "product": f"product {int(500 * chance.random())}",
        "amount": int(chance.random() * 10_000),
        "paid": chance.random() < 0.5,
    }
    return json.dumps([record(number) for number in range(RECORDS)])


def regions(document):
    """Returns the table of the regions of records, with the largest amount first."""
    counts, amounts = Counter(), Counter()
    for record in json.loads(document):
        counts[record["region"]] += 1
        amounts[record["region"]] += record["amount"]
    assert len(set(amounts.values())) == REGIONS, "the order of the regions must be unique"
    rows = [f"{region},{counts[region]},{amount}" for region, amount in amounts.most_common()]
    return "\n".join(["region,records,amount", *rows]) + "\n"


def jobs():
    """Returns the inputs and the expected result of each job, by its name."""
    words = text()
    counts = Counter(words.split()).most_common(2)
    assert counts[0][1] > counts[1][1], "the most frequent word must be unique"
    top = f"{words.count(chr(10))} {len(words.split())} {counts[0][0]} {counts[0][1]}"
    items = document()
    table = records()
    active = [item["amount"] for item in json.loads(items) if item["active"]]
    return {
        "noop": {"inputs": {}, "expected": ""},
        "host": {"inputs": {"name": "world"}, "expected": "HELLO, WORLD"},
        "text": {"inputs": {"text": words}, "expected": top},
        "sieve": {"inputs": {}, "expected": str(PRIMES_BELOW_A_MILLION)},
        "json": {"inputs": {"document": items}, "expected": f"{len(active)} {sum(active)}"},
        "records": {"inputs": {"document": table}, "expected": regions(table)},
    }


def write(folder):
    """Writes each job to a file of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, job in jobs().items():
        (folder / f"{name}.json").write_text(json.dumps(job))
