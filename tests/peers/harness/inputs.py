"""The inputs of the jobs and their expected results, the same on every machine."""

import json
import random
from collections import Counter

TEXT_BYTES = 1_000_000
JSON_BYTES = 200_000
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


def jobs():
    """Returns the inputs and the expected result of each job, by its name."""
    words = text()
    counts = Counter(words.split()).most_common(2)
    assert counts[0][1] > counts[1][1], "the most frequent word must be unique"
    top = f"{words.count(chr(10))} {len(words.split())} {counts[0][0]} {counts[0][1]}"
    items = document()
    active = [item["amount"] for item in json.loads(items) if item["active"]]
    return {
        "noop": {"inputs": {}, "expected": ""},
        "host": {"inputs": {"name": "world"}, "expected": "HELLO, WORLD"},
        "text": {"inputs": {"text": words}, "expected": top},
        "sieve": {"inputs": {}, "expected": str(PRIMES_BELOW_A_MILLION)},
        "json": {"inputs": {"document": items}, "expected": f"{len(active)} {sum(active)}"},
    }


def write(folder):
    """Writes each job to a file of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, job in jobs().items():
        (folder / f"{name}.json").write_text(json.dumps(job))
