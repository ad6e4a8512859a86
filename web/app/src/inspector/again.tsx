/** A recorded model call, asked again with a changed prompt: what it answered then, beside what it answers now. */

import { useState } from "preact/hooks";
import { evaluations, type AnswerAgain } from "../api/evaluations.ts";
import { json } from "../api/http.ts";
import type { Usage } from "../api/types.ts";
import { resultOf } from "../chat/calls.ts";
import { ThreadHead } from "../chat/thread-head.tsx";
import { dollars } from "../parts/money.ts";
import { useLoad } from "../parts/load.ts";
import { attempt } from "../parts/notice.tsx";
import { Empty, Shown } from "../parts/states.tsx";
import { agentName, clip, readable } from "../parts/text.ts";
import { count, duration } from "../parts/time.tsx";
import { Changes } from "./changes.tsx";
import { RunPicker } from "./run-picker.tsx";

interface Call {
  kind: string;
  span_id: string;
  role: string;
  agent?: string;
  step: number;
  input?: { role: string; content: string }[];
  output?: string;
  calls?: { name: string; arguments: unknown }[];
  usage: Usage;
}

const read = async (thread: string, run: string) => {
  const { spans } = await json<{ spans: Call[] }>(`v1/threads/${encodeURIComponent(thread)}/trace${run ? `?run=${Number(run)}` : ""}`);
  return spans.filter((span) => span.kind === "chat" && span.input && span.output !== undefined);
};

export function AgainView({ thread, query }: { thread: string; query: URLSearchParams }) {
  const [run, setRun] = useState(query.get("run") ?? "");
  const [chosen, setChosen] = useState("");
  const calls = useLoad(() => read(thread, run), [thread, run]);
  return (
    <div class="inspector">
      <ThreadHead thread={thread} here="Try a prompt" />
      <div class="inspector-body"><div class="view">
        <Shown of={calls} what="the model calls">
          {(all) => {
            const call = all.find(({ span_id }) => span_id === chosen) ?? all[0];
            const name = ({ role, agent, step }: Call, index: number) => `${index + 1}. ${role}${agent ? `, ${agentName(agent)}` : ""}, step ${step}`;
            return (
              <>
                <form class="filters" onSubmit={(event) => event.preventDefault()}>
                  <RunPicker thread={thread} name="Run" all="Newest" value={run} onChange={setRun} />
                  <label class="inline">Model call <select value={call?.span_id ?? ""} onChange={(event) => setChosen(event.currentTarget.value)}>{all.map((one, index) => <option key={one.span_id} value={one.span_id}>{readable(name(one, index))}</option>)}</select></label>
                </form>
                {call ? <Trial key={call.span_id} thread={thread} run={run} call={call} /> : <Empty title="No model calls in this run" />}
              </>
            );
          }}
        </Shown>
      </div></div>
    </div>
  );
}

/** Lays JSON out; other texts stay as they are. */
function laidOut(text: string): string {
  const value = resultOf(text);
  return typeof value === "object" && value !== null ? JSON.stringify(value, null, 2) : text;
}

/** Writes what a model answered: its text, and the calls that it asked for. */
const written = ({ output = "", calls = [] }: { output?: string; calls?: { name: string; arguments: unknown }[] }) =>
  [laidOut(output), ...calls.map(({ name, arguments: given }) => `${name}(${JSON.stringify(given)})`)].filter(Boolean).join("\n");

function Trial({ thread, run, call }: { thread: string; run: string; call: Call }) {
  const recorded = (call.input ?? []).filter(({ role }) => role === "system").map(({ content }) => content).join("\n\n");
  const [prompt, setPrompt] = useState(recorded);
  const [answer, setAnswer] = useState<AnswerAgain | null>(null);
  const [isAsking, setAsking] = useState(false);
  async function ask(event: Event) {
    event.preventDefault();
    setAsking(true);
    await attempt(async () => setAnswer(await evaluations.again(thread, { ...(run && { run: Number(run) }), span_id: call.span_id, prompt })));
    setAsking(false);
  }
  return (
    <>
      <form onSubmit={(event) => void ask(event)}>
        <label>Prompt <textarea rows={14} value={prompt} onInput={(event) => setPrompt(event.currentTarget.value)} /></label>
        <p class="buttons">
          <button type="submit" class="primary" disabled={isAsking || !prompt.trim()}>{isAsking ? "Asking…" : "Ask again"}</button>
          <button type="button" disabled={prompt === recorded} onClick={() => setPrompt(recorded)}>Restore the recorded prompt</button>
        </p>
      </form>
      <details class="card"><summary>{count(call.input?.length ?? 0)} messages of the request</summary><pre class="document" tabIndex={0}>{readable(clip((call.input ?? []).filter(({ role }) => role !== "system").map(({ role, content }) => `${role}: ${content}`).join("\n\n"), 20_000))}</pre></details>
      <div class="cards two">
        <section class="card" aria-label="Recorded answer"><h2>Recorded</h2><p class="hint small">{count(call.usage.input_tokens)} → {count(call.usage.output_tokens)} tokens</p><pre class="document" tabIndex={0}>{readable(written(call))}</pre></section>
        {answer && <section class="card" aria-label="New answer"><h2>Now</h2><p class="hint small">{readable(answer.model)} · {count(answer.usage.input_tokens)} → {count(answer.usage.output_tokens)} tokens · {duration(answer.latency_ms)}{answer.nano_usd !== null && ` · ${dollars(answer.nano_usd)}`}</p><pre class="document" tabIndex={0}>{readable(written(answer))}</pre></section>}
      </div>
      {answer && (written(call) === written(answer) ? <p role="status">Both answers are the same.</p> : <Changes changes={[{ path: "answer", before: written(call), after: written(answer) }]} />)}
    </>
  );
}
