text, instruction = args
if not text.strip():
    fail("EBOUND", "there is no text to summarize")
for _ in range(4):
    parts = [text[i : i + 24000] for i in range(0, len(text), 24000)]
    if len(parts) == 1:
        break
    notes = [
        ai_assist(part, "This is one part of a longer text. Note its main points in at most 10 short lines.")
        for part in parts
    ]
    text = "\n\n".join(notes)
out(ai_assist(text, instruction))
