from decimal import Decimal

text, by = args
key = Decimal if by.endswith("num") else None
out("\n".join(sorted(text.splitlines(), key=key, reverse=by.startswith("-"))))
