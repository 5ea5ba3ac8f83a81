"""The official OpenAI client for Python against a server whose model writes slowly.

Usage: openai_stream.py BASE_URL TOKEN. Prints one line and exits with 0 if all checks pass.
"""

import sys

import openai

from slow_model import WORDS

# Pieces that arrive together are joined, so there may be fewer than words.
FEWEST = 20


def main(base_url: str, token: str) -> None:
    client = openai.OpenAI(base_url=f"{base_url}/v1", api_key=token, max_retries=0, timeout=60)
    whole = " ".join(WORDS)
    for form in ("marked", "done", "plain"):
        chunks = client.chat.completions.create(
            model="wattle", messages=[{"role": "user", "content": form}], stream=True
        )
        deltas = [c.choices[0].delta.content for c in chunks if c.choices]
        deltas = [delta for delta in deltas if delta]
        assert "".join(deltas).strip() == whole, deltas
        # A call may follow plain text, so it is sent at its end.
        assert len(deltas) >= FEWEST if form != "plain" else len(deltas) == 1, (form, len(deltas))
        with client.responses.stream(model="wattle", input=form) as stream:
            kinds = [event.type for event in stream]
            assert stream.get_final_response().output_text.strip() == whole
        count = kinds.count("response.output_text.delta")
        assert count >= FEWEST if form != "plain" else count == 1, (form, count)
    print("streams of the client for Python: ok")


if __name__ == "__main__":
    main(*sys.argv[1:3])
