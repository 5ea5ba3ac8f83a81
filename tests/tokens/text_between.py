import re

text, before, after = args
if not (before and after):
    fail("EBOUND", "a marker is empty")
pieces = re.findall(re.escape(before) + "(.*?)" + re.escape(after), text, re.DOTALL)
if not pieces:
    fail("ENOENT", "the text has no such piece")
for piece in pieces:
    out(piece)
