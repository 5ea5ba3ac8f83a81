text, old, new = args
if not old:
    fail("EBOUND")
out(text.replace(old, new))
