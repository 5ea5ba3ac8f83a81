import re
from urllib.parse import urldefrag, urljoin, urlsplit

pages = list(args)
host = urlsplit(args[0]).hostname
for page in pages:
    for href in re.findall(r'<a\b[^>]*\bhref="([^"]*)"', http_get(page)):
        link = urldefrag(urljoin(page, href)).url
        if urlsplit(link).hostname == host and link not in pages:
            pages.append(link)
out("\n".join(pages))
