"""Drives a server with OpenAI's Python client from PyPI, unchanged; run by python.py in its world."""

from openai import OpenAI


def drive(url, run, database):
    """Checks responses and chat completions, and that their threads are those of the other faces."""
    client = OpenAI(base_url=f"{url}/v1", api_key="none")
    first = client.responses.create(model="swarm", input="clarify")
    assert first.output_text == "Which year?", first
    second = client.responses.create(model="swarm", input="1945", previous_response_id=first.id)
    assert second.output_text == "Hello from the star." and second.status == "completed", second
    assert second.previous_response_id == first.id and second.usage.total_tokens > 0
    # The same question once more, answered otherwise: the thread goes back to it.
    other = client.responses.create(model="swarm", input="1945, or later", previous_response_id=first.id)
    assert other.output_text == "Hello from the star.", other
    asked = client.responses.create(model="swarm", input="approve this")
    assert "notes.append_note" in asked.output_text and "approve" in asked.output_text, asked
    done = client.responses.create(model="swarm", input="approve", previous_response_id=asked.id)
    assert done.output_text == "Hello from the star.", done
    assert client.responses.retrieve(done.id).output_text == done.output_text
    with client.responses.stream(model="swarm", input="hello") as stream:
        text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        assert stream.get_final_response().output_text == text == "Hello from the star.", text
    chat = client.chat.completions.create(model="swarm", messages=[{"role": "user", "content": "hello"}])
    assert chat.choices[0].message.content == "Hello from the star.", chat
    pieces = client.chat.completions.create(
        model="swarm", stream=True, messages=[{"role": "user", "content": "hello"}])
    text = "".join(chunk.choices[0].delta.content or "" for chunk in pieces if chunk.choices)
    assert text == "Hello from the star.", text
    # A thread that OpenAI's client began continues at the command line.
    thread = client.responses.create(model="swarm", input="clarify").metadata["thread_id"]
    ran = run("resume", thread, "--message", "1945", "-q")
    assert ran.stdout == "Hello from the star.\n", ran
