import csv
from pathlib import Path

template = Path(args[0]).read_text()
Path("letters").mkdir(exist_ok=True)
with open(args[1], newline="") as file:
    for row in csv.DictReader(file):
        letter = template
        for column, value in row.items():
            letter = letter.replace("{{" + column + "}}", value)
        Path("letters", f"{row['name']}.txt").write_text(letter)
