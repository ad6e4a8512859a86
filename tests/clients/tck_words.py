"""A plugin of pytest for the A2A TCK: says the id of each message in its text too.

The TCK tells the agent what to do by the id of a message, as its scenarios have it. A model hears texts, so each message
gets a second part with its id.
"""

import json

import httpx

SEND = httpx.Client.send


def with_its_id(content):
    try:
        body = json.loads(content)
    except ValueError:
        return None
    params = body.get("params", body) if isinstance(body, dict) else None
    message = params.get("message") if isinstance(params, dict) else None
    if not isinstance(message, dict):
        return None
    parts, name = message.get("parts"), message.get("messageId")
    if not isinstance(name, str) or not isinstance(parts, list) or not parts:
        return None
    message["parts"] = [*parts, {"text": name}]
    return json.dumps(body).encode()


def send(client, request, **more):
    content = with_its_id(request.content) if request.method == "POST" else None
    if content is not None:
        headers = {**request.headers, "content-length": str(len(content))}
        request = httpx.Request(
            request.method, request.url, headers=headers, content=content, extensions=request.extensions)
    return SEND(client, request, **more)


httpx.Client.send = send
