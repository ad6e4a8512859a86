/** Where a thread begins: the question, examples, and what is to be set up first. */

import { useState } from "preact/hooks";
import { QUESTIONS, useDemo } from "../demo.ts";
import { graphs } from "../api/graphs.ts";
import { json } from "../api/http.ts";
import { agents } from "../data/agents.ts";
import { GraphRows } from "../graphs/graphs-view.tsx";
import { Icon } from "../parts/icon.tsx";
import { useLoad } from "../parts/load.ts";
import { attempt } from "../parts/notice.tsx";
import { readable } from "../parts/text.ts";
import { go, link } from "../router.ts";
import { Composer } from "./composer.tsx";
import { begin, type Request, type Sending } from "./conversation.ts";
import { newId } from "./draft.ts";
import { recent } from "./titles.ts";

export function NewThread() {
  const known = useLoad(agents.list, [], { every: 15_000 });
  const own = useLoad(graphs.own, []);
  const isDemo = useDemo();
  const [isAsking, setAsking] = useState(false);
  const send = async (request: Request, sending: Sending) => go("chat", await begin(request, sending));
  async function example(question: string) {
    setAsking(true);
    await attempt(() => send({ question, include_data: true }, { id: newId(), isRetry: false }));
    setAsking(false);
  }
  const names = known.data?.agents.map((agent) => agent.name) ?? [];
  return (
    <section class="conversation new" aria-label="New thread">
      <h1>What do you want to know?</h1>
      <Composer agents={names} busy={false} onSend={send} autoFocus />
      {isDemo && (
        <section class="examples" aria-label="Examples">
          <p class="hint"><strong>Demo:</strong> the data is real, and the model is a script that answers only these questions.</p>
          {QUESTIONS.map((question) => <button key={question} type="button" class="example" disabled={isAsking} onClick={() => void example(question)}><Icon name="message" /> <span>{question}</span></button>)}
          <p class="small hint">For your own data, set a model and servers: <code>perihelion init</code>, then <code>perihelion serve</code>.</p>
        </section>
      )}
      {own.data && own.data.length > 0 && <section aria-label="Graphs"><h2>Or start a graph</h2><GraphRows all={own.data} /></section>}
      {known.data && !isDemo && <FirstSteps servers={known.data.agents.length} problems={known.data.problems} onCheck={known.reload} />}
    </section>
  );
}

/** A model server on the machine of the service; only its operators are told. */
interface LocalModel {
  server: string;
  url: string;
  model: string;
}

interface StepsProps {
  servers: number;
  problems: { server: string; problem: string }[];
  onCheck: () => void;
}

/** What a new installation still needs; nothing once it has all of it. */
function FirstSteps({ servers, problems, onCheck }: StepsProps) {
  const answered = recent.value.some((thread) => thread.status === "idle");
  const failed = !answered && recent.value.some((thread) => thread.status === "error");
  const local = useLoad(async () => {
    const isOperator = !answered && (await json<{ scopes: string[] }>("v1/auth/me")).scopes.includes("operate");
    return isOperator ? json<{ found: LocalModel[] }>("v1/fleet/local-models") : null;
  }, [answered, failed]);
  const found = local.data?.found[0];
  const model = found ? <>{found.server} serves {found.model} here: <code>perihelion init --local {found.url}</code> writes its settings.</> : <>Set <code>OPENAI_API_KEY</code> or <code>OPENAI_BASE_URL</code>; <code>perihelion doctor</code> checks them.</>;
  const steps = [
    { title: "A server is connected", isDone: servers > 0, about: problems[0] ? <>{readable(problems[0].server)}: {readable(problems[0].problem)} <a href={link("agents")}>Show servers</a></> : <><code>perihelion init</code> writes a first <code>mcp-servers.toml</code>.</> },
    { title: "The model answers", isDone: answered, about: failed ? <>The last run failed. <code>perihelion doctor</code> checks the model.</> : model },
    { title: "The first question is answered", isDone: answered, about: <>Ask one above.</> },
  ];
  if (steps.every((step) => step.isDone)) return null;
  return (
    <section class="card first-steps" aria-label="First steps">
      <p class="values-head"><strong>First steps</strong> <button type="button" class="link small" onClick={onCheck}>Check again</button></p>
      <ul class="checklist">
        {steps.map((step) => (
          <li key={step.title}>
            <span class={step.isDone ? "mark good" : "mark"} role="img" aria-label={step.isDone ? "done" : "not done"}><Icon name={step.isDone ? "check" : "circle"} /></span>
            <div class="item"><p class="item-title">{step.title}</p>{!step.isDone && <p class="hint small">{step.about}</p>}</div>
          </li>
        ))}
      </ul>
    </section>
  );
}
