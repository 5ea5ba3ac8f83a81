import re

text, before, after = args
if not (before and after):
    out("a marker is empty")
    fail("EBOUND")
pieces = re.findall(re.escape(before) + "(.*?)" + re.escape(after), text, re.DOTALL)
if not pieces:
    out("the text has no such piece")
    fail("ENOENT")
for piece in pieces:
    out(piece)
