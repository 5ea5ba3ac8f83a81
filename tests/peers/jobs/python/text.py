words = text.split()
counts = {}
for word in words:
    counts[word] = counts.get(word, 0) + 1
top = ""
most = 0
for word, count in counts.items():
    if count > most:
        top = word
        most = count
f"{len(text.splitlines())} {len(words)} {top} {most}"
