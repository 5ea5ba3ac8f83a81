"""The official OpenAI client for Python against a server with recorded answers.

Usage: openai_client.py BASE_URL TOKEN [structured]. Prints one line and exits with 0 if all checks
pass.
"""

import sys

import openai
import pydantic


def structured(base_url: str, token: str) -> None:
    """Checks typed answers, against a server whose recording answers with JSON."""
    client = openai.OpenAI(base_url=f"{base_url}/v1", api_key=token, max_retries=0, timeout=60)
    messages = [{"role": "user", "content": "Greet."}]

    class Greeting(pydantic.BaseModel):
        text: str

    parsed = client.chat.completions.parse(
        model="wattle", messages=messages, response_format=Greeting
    )
    assert parsed.choices[0].message.parsed == Greeting(text="hello"), parsed
    response = client.responses.parse(model="wattle", input="Greet.", text_format=Greeting)
    assert response.output_parsed == Greeting(text="hello"), response
    plain = client.chat.completions.create(
        model="wattle", messages=messages, response_format={"type": "json_object"}
    )
    assert plain.choices[0].message.content == '{"text":"hello"}', plain
    print("structured output of the client for Python: ok")


def main(base_url: str, token: str) -> None:
    client = openai.OpenAI(base_url=f"{base_url}/v1", api_key=token, max_retries=0, timeout=60)
    assert "wattle" in [model.id for model in client.models.list()], "the agent is listed"
    assert client.models.retrieve("wattle").id == "wattle"

    messages = [{"role": "user", "content": "Say hello."}]
    plain = client.chat.completions.create(model="wattle", messages=messages)
    assert plain.choices[0].message.content == "hello", plain
    assert plain.choices[0].finish_reason == "stop" and plain.usage is not None
    messages += [{"role": "assistant", "content": "hello"}, {"role": "user", "content": "Again."}]
    again = client.chat.completions.create(model="wattle", messages=messages)
    assert again.choices[0].message.content == "hello"

    chunks = list(
        client.chat.completions.create(
            model="wattle",
            messages=messages[:1],
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == "hello", chunks
    assert chunks[-1].usage is not None and chunks[-1].usage.total_tokens >= 0

    response = client.responses.create(model="wattle", input="Say hello.")
    assert response.output_text == "hello" and response.status == "completed"
    assert client.responses.retrieve(response.id).output_text == "hello"
    following = client.responses.create(
        model="wattle", input="Again.", previous_response_id=response.id
    )
    assert following.output_text == "hello"
    with client.responses.stream(model="wattle", input="Say hello.") as stream:
        kinds = [event.type for event in stream]
        assert "response.output_text.delta" in kinds and kinds[-1] == "response.completed", kinds
        assert stream.get_final_response().output_text == "hello"

    # The recording answers `hello`, which no schema of an object accepts.
    class Greeting(pydantic.BaseModel):
        text: str

    try:
        client.chat.completions.parse(
            model="wattle", messages=messages[:1], response_format=Greeting
        )
    except openai.APIStatusError as error:
        assert error.status_code == 502 and error.code == "run_failed", error
    else:
        raise AssertionError("an invalid answer is not an error")

    # A stream that the client closes before its end.
    with client.chat.completions.create(model="wattle", messages=messages[:1], stream=True) as stream:
        next(iter(stream))

    for kind, call in [
        (openai.AuthenticationError, lambda: openai.OpenAI(
            base_url=f"{base_url}/v1", api_key="wrong", max_retries=0).models.list()),
        (openai.NotFoundError, lambda: client.chat.completions.create(
            model="gpt-9", messages=messages[:1])),
        (openai.UnprocessableEntityError, lambda: client.chat.completions.create(
            model="wattle", messages=[])),
    ]:
        try:
            call()
        except kind as error:
            assert error.body["message"] and error.code, error
        else:
            raise AssertionError(f"{kind.__name__} is not raised")
    print(f"openai {openai.__version__} for Python: ok")


if __name__ == "__main__":
    if sys.argv[3:] == ["structured"]:
        structured(*sys.argv[1:3])
    else:
        main(*sys.argv[1:])
