"""Programs with Python functions as their tools."""

import dataclasses

import wattle


@dataclasses.dataclass
class Forecast:
    city: str
    degrees: int


def forecast(city: str) -> Forecast:
    """Returns the weather of tomorrow.

    Args:
        city: The name of a city.
    """
    return Forecast(city, len(city))


PROGRAM = """
(each $city (str.words (arg 0))
  (let $f (forecast $city))
  (out "{}: {} degrees" $f.city $f.degrees))
"""

checked = wattle.check(PROGRAM, tools=[forecast])
print(checked.ok, checked.touches["programs"])

program = wattle.Program(PROGRAM, tools=[forecast])
outcome: wattle.Outcome = program.run("Oslo Bergen")
print(outcome.text)

try:
    wattle.run('(out (fs.read "missing.txt"))')
except wattle.ProgramFailed as error:
    print(error.code, error.line, error.reason)
