import html
import re

found = re.search(r"<title\b[^>]*>(.*?)</title", http_get(args[0]), re.IGNORECASE | re.DOTALL)
if not found:
    out("the page has no title")
    fail("ENOENT")
out(" ".join(html.unescape(found[1]).split()))
