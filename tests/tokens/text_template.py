import json
import re

template, values = args
values = json.loads(values, parse_float=str)
place = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)


def fill(match):
    name = match[1].strip()
    value = values
    for key in name.split("."):
        if not isinstance(value, dict) or key not in value:
            out(f"there is no value for {name}")
            fail("ENOENT")
        value = value[key]
    return value if isinstance(value, str) else json.dumps(value)


if "{{" in place.sub("", template):
    out("a {{ is not closed")
    fail("EPARSE")
out(place.sub(fill, template))
