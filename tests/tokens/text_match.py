import re

text, pattern = args
out("\n".join(match[0] for match in re.finditer(pattern, text)))
