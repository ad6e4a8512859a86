/** Two threads, or two runs, beside each other, step by step. */

import { json } from "../api/http.ts";
import { PAGE, threads } from "../api/threads.ts";
import { ThreadHead } from "../chat/thread-head.tsx";
import { threadTitle } from "../chat/titles.ts";
import { dollars } from "../parts/money.ts";
import { useLoad } from "../parts/load.ts";
import { Newest } from "../parts/rest.tsx";
import { Empty, Shown } from "../parts/states.tsx";
import { agentName, clip, readable } from "../parts/text.ts";
import { count, duration, plural } from "../parts/time.tsx";
import { Changes } from "./changes.tsx";
import type { Change } from "./difference.ts";
import { putQuery } from "../router.ts";
import { RunPicker } from "./run-picker.tsx";

interface Totals {
  steps: number;
  model_calls: number;
  tool_calls: number;
  questions: number;
  input_tokens: number;
  output_tokens: number;
  cost_usd: number;
  seconds: number;
}

interface Side {
  title?: string;
  thread_id: string;
  run: number | null;
  totals: Totals;
}

interface Pair {
  a: number | null;
  b: number | null;
  nodes: string[];
  differences: { aspect: string; of: string; changes: Change[] }[];
}

interface Comparison {
  same: boolean;
  shared: number;
  a: Side;
  b: Side;
  steps: Pair[];
}

/** Which runs are compared: the numbers of one thread's, or nothing for whole threads. */
interface Choice {
  with_: string;
  run: string;
  withRun: string;
}

export function CompareView({ thread, query }: { thread: string; query: URLSearchParams }) {
  const choice: Choice = { with_: query.get("with") ?? "", run: query.get("run") ?? "", withRun: query.get("with_run") ?? "" };
  const others = useLoad(() => threads.search(), []);
  function put(part: Partial<Choice>) {
    const { with_, run, withRun } = { ...choice, ...part };
    putQuery({ with: with_, run, with_run: withRun });
  }
  return (
    <div class="inspector">
      <ThreadHead thread={thread} here="Compare" />
      <div class="inspector-body"><div class="view">
      <form class="compared" onSubmit={(event) => event.preventDefault()}>
        <RunPicker thread={thread} name="Run" all="All runs" value={choice.run} onChange={(run) => put({ run })} />
        <label class="inline">
          with
          <select aria-label="Other thread" value={choice.with_} onChange={(event) => put({ with_: event.currentTarget.value })}>
            <option value="">Choose a thread…</option>
            <option value={thread}>This thread: two of its runs</option>
            {(others.data ?? []).filter((other) => other.thread_id !== thread).map((other) => <option key={other.thread_id} value={other.thread_id}>{clip(threadTitle(other), 60)}</option>)}
          </select>
        </label>
        {choice.with_ && <RunPicker thread={choice.with_} name="Its run" all="All runs" value={choice.withRun} onChange={(withRun) => put({ withRun })} />}
      </form>
      <Newest shown={others.data?.length ?? 0} most={PAGE} />
      {choice.with_ ? <Compared key={Object.values(choice).join(" ")} thread={thread} choice={choice} /> : <Empty title="Choose a thread to compare with" />}
      </div></div>
    </div>
  );
}

function Compared({ thread, choice }: { thread: string; choice: Choice }) {
  const compared = useLoad(() => {
    const query = new URLSearchParams({ with: choice.with_, ...(choice.run && { run: choice.run }), ...(choice.withRun && { with_run: choice.withRun }) });
    return json<Comparison>(`v1/threads/${encodeURIComponent(thread)}/diff?${query}`);
  }, []);
  return (
    <Shown of={compared} what="the comparison">
      {(found) => {
        const differing = found.steps.filter((pair) => pair.differences.length > 0);
        return (
          <>
            <TotalsTable a={found.a} b={found.b} />
            <p role="status">
              {found.shared > 0 && `${plural(found.shared, "step")} shared. `}
              {found.same ? "No differences." : `${differing.length} of ${plural(found.steps.length, "step")} differ.`}
            </p>
            {found.same && <Empty title="Both runs are identical" />}
            {differing.map((pair, index) => <PairView key={index} pair={pair} open={index === 0} />)}
          </>
        );
      }}
    </Shown>
  );
}

const ROWS: [keyof Totals, string][] = [
  ["steps", "Steps"],
  ["model_calls", "Model calls"],
  ["tool_calls", "Tool calls"],
  ["questions", "Questions"],
  ["input_tokens", "Tokens in"],
  ["output_tokens", "Tokens out"],
];

const cost = ({ totals }: Side) => (totals.cost_usd === 0 ? "–" : dollars(totals.cost_usd * 1e9));

function TotalsTable({ a, b }: { a: Side; b: Side }) {
  const name = (side: Side) => `${readable(clip(side.title ?? side.thread_id.slice(0, 8), 40))}${side.run === null ? "" : `, run ${side.run}`}`;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Totals">
      <table class="totals">
        <thead><tr><th>Total</th><th class="number">{name(a)}</th><th class="number">{name(b)}</th></tr></thead>
        <tbody>
          {ROWS.map(([key, title]) => (
            <tr key={key}><th scope="row">{title}</th><td class="number">{count(a.totals[key])}</td><td class="number">{count(b.totals[key])}</td></tr>
          ))}
          <tr><th scope="row">Cost</th><td class="number">{cost(a)}</td><td class="number">{cost(b)}</td></tr>
          <tr><th scope="row">Time at work</th><td class="number">{duration(a.totals.seconds * 1000)}</td><td class="number">{duration(b.totals.seconds * 1000)}</td></tr>
        </tbody>
      </table>
    </div>
  );
}

function PairView({ pair, open }: { pair: Pair; open: boolean }) {
  const step = pair.a === pair.b ? `Step ${pair.a}` : `Steps ${pair.a ?? "–"} and ${pair.b ?? "–"}`;
  return (
    <details class="card" open={open}>
      <summary><strong>{step}</strong> {pair.nodes.map(agentName).map(readable).join(", ")} <span class="hint">{plural(pair.differences.length, "difference")}</span></summary>
      {pair.differences.map((one, index) => (
        <div key={index}>
          <h2>{readable(one.aspect)}{one.of && `: ${readable(agentName(one.of))}`}</h2>
          <Changes changes={one.changes} />
        </div>
      ))}
    </details>
  );
}
