"""The official OpenAI client for Python against a server with recorded answers.

Usage: openai_client.py BASE_URL TOKEN. Prints one line and exits with 0 if all checks pass.
"""

import sys

import openai


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
    main(*sys.argv[1:])
