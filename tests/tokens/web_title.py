import html
import re

found = re.search(r"<title\b[^>]*>(.*?)</title", http_get(args[0]), re.IGNORECASE | re.DOTALL)
if not found:
    fail("ENOENT", "the page has no title")
out(" ".join(html.unescape(found[1]).split()))
