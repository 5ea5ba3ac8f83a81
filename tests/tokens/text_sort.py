text, by = args
key = float if by.endswith("num") else None
out("\n".join(sorted(text.splitlines(), key=key, reverse=by.startswith("-"))))
