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
            fail("ENOENT", f"there is no value for {name}")
        value = value[key]
    return value if isinstance(value, str) else json.dumps(value)


if "{{" in place.sub("", template):
    fail("EPARSE", "a {{ is not closed")
out(place.sub(fill, template))
