import json

text = args[0]
out(
    json.dumps(
        {
            "lines": len(text.splitlines()),
            "words": len(text.split()),
            "characters": len(text),
            "bytes": len(text.encode()),
        }
    )
)
