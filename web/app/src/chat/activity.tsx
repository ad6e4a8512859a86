/** What a run does, where the answer will be: the plan as a checklist, agents at work, their calls; afterwards folded to a line. */

import { useEffect, useState } from "preact/hooks";
import type { FoundRun } from "../api/runs.ts";
import type { AgentResult, Interrupt, Planner } from "../api/types.ts";
import { now as serverTime } from "../parts/clock.ts";
import { dollars } from "../parts/money.ts";
import { useLoad } from "../parts/load.ts";
import { Markdown } from "../parts/markdown.tsx";
import { Status } from "../parts/status.tsx";
import { agentName, clip, readable } from "../parts/text.ts";
import { duration, plural } from "../parts/time.tsx";
import { CallRow } from "./call-row.tsx";
import { callsOf, completed, recorded, type Call } from "./calls.ts";
import type { Live } from "./live.ts";
import { HOW, checklist, problem, type Item, type Work } from "./checklist.ts";

interface LiveProps {
  work: Work;
  live: Live;
  open: Interrupt[];
  lost: boolean;
  /** When the run began. */
  since: string | undefined;
  isWriting: boolean;
}

/** The work of a run that is under way. */
export function LiveActivity({ work, live, open, lost, since, isWriting }: LiveProps) {
  const line = live.progress.at(-1);
  const now = isWriting ? "Writing the answer" : line ? `${line.agent === "supervisor" ? "The supervisor" : agentName(line.agent)} ${readable(clip(line.text, 160))}` : "Planning the work";
  return (
    <section class="activity" aria-label="Activity">
      <p class="working" role="status">
        {lost ? <><span class="dot bad" aria-hidden="true" /> Connection lost. Reconnecting…</> : <><span class="dot busy" aria-hidden="true" /> <span class="now">{now}</span></>}
        <Elapsed since={since} />
      </p>
      <Checklist items={checklist(work, open, true, isWriting)} calls={live.calls} work={work} />
    </section>
  );
}

/** Counts up while something runs. */
function Elapsed({ since }: { since: string | undefined }) {
  const [, setTurn] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setTurn((turn) => turn + 1), 1_000);
    return () => clearInterval(timer);
  }, []);
  const ms = since ? serverTime() - new Date(since).getTime() : 0;
  return ms >= 1_000 ? <span class="hint elapsed" aria-hidden="true">{seconds(ms)}</span> : null;
}

/** Writes a time that counts up: whole seconds, from a minute on with minutes. */
const seconds = (ms: number) => (ms < 60_000 ? `${Math.floor(ms / 1_000)} s` : duration(ms));

interface DoneProps {
  thread: string;
  work: Work;
  /** What was seen of it while it ran. */
  live: Live;
  open: Interrupt[];
  /** Whether its trace is that of the thread's newest run. */
  isNewest: boolean;
  /** Its runs, newest first; none where the command line ran it. */
  runs: FoundRun[];
}

const sum = (numbers: (number | null)[]) => numbers.reduce<number>((all, one) => all + (one ?? 0), 0);

/** The work of a turn that is over, folded to a line. */
export function DoneActivity({ thread, work, live, open, isNewest, runs }: DoneProps) {
  const isAsking = open.length > 0;
  const [isOpen, setOpen] = useState(isAsking);
  useEffect(() => {
    if (isAsking) setOpen(true);
  }, [isAsking]);
  const calls = work.results.reduce((sum, result) => sum + (result.tools?.length ?? 0), 0);
  const ms = sum(runs.map((run) => run.duration_ms));
  const tokens = sum(runs.map((run) => run.tokens));
  const cost = sum(runs.map((run) => run.cost_usd));
  const facts = [ms > 0 ? `Worked ${duration(ms)}` : "Work", calls > 0 && plural(calls, "call"), tokens > 0 && plural(tokens, "token"), cost > 0 && dollars(cost * 1e9)].filter(Boolean);
  if (work.tasks.length === 0 && work.plan.length === 0) return null;
  return (
    <details class="activity done" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{facts.join(" · ")}</summary>
      {isOpen && <Opened thread={thread} work={work} live={live} open={open} isNewest={isNewest} runs={runs} />}
    </details>
  );
}

function Opened({ thread, work, live, open, isNewest, runs }: DoneProps) {
  // The trace of its last run has those that it continued, too.
  const number = runs.find((run) => run.number !== null)?.number ?? undefined;
  const trace = useLoad(async () => (isNewest || number !== undefined ? recorded(thread, number) : null), [thread, isNewest, number]);
  const calls = completed(work.results.flatMap(callsOf), [...(trace.data?.calls ?? []), ...live.calls]);
  const spent = trace.data?.spent;
  return (
    <>
      <Checklist items={checklist(work, open, false, false)} calls={calls} work={work} />
      {work.planner && <Decision planner={work.planner} />}
      {spent && <p class="hint small">{plural(spent.calls, "model call")} · {plural(spent.input_tokens + spent.output_tokens, "token")}{spent.nano_usd !== undefined && ` · ${dollars(spent.nano_usd)}`}</p>}
    </>
  );
}

function Checklist({ items, calls, work }: { items: Item[]; calls: Call[]; work: Work }) {
  const planned = items.some((item) => item.isPlanned);
  return (
    <>
      {!planned && work.plan.length > 0 && <p class="plan hint small">Plan: {readable(work.plan.join(" → "))}</p>}
      <ol class={planned ? "checklist plan" : "checklist"} aria-label="Tasks">
        {items.map((item) => (
          <li key={item.id} class={item.how}>
            <Status of={item.how} words={HOW[item.how]} />
            <div class="item">
              <p class="item-title">{readable(item.title)} {item.agent && <span class="chip">{readable(agentName(item.agent))}</span>} {item.words && <span class="hint small">{readable(item.words)}</span>}</p>
              {item.task && item.task !== item.title && <p class="hint small">{readable(clip(item.task, 300))}</p>}
              {item.result && <Outcome result={item.result} />}
              <Calls calls={calls.filter((call) => item.agent && (call.agent === item.agent || agentName(call.agent) === agentName(item.agent)))} />
            </div>
          </li>
        ))}
      </ol>
    </>
  );
}

function Outcome({ result }: { result: AgentResult }) {
  const error = problem(result.error);
  if (error) return <p class="error-text small">{readable(error)}</p>;
  if (!result.output) return null;
  return (
    <details class="outcome">
      <summary class="small hint"><span class="ellipsis">{readable(clip(result.output.split("\n", 1)[0] ?? "", 120))}</span></summary>
      <Markdown text={result.output} />
    </details>
  );
}

function Calls({ calls }: { calls: Call[] }) {
  if (calls.length === 0) return null;
  return <ul class="calls" aria-label="Calls">{calls.map((call, index) => <li key={index}><CallRow call={call} /></li>)}</ul>;
}

/** Why the supervisor planned as it did. */
function Decision({ planner }: { planner: Planner }) {
  return (
    <details class="decision">
      <summary class="small hint">Decision</summary>
      {planner.rationale && <p>{readable(planner.rationale)}</p>}
      {(planner.order?.length ?? 0) > 0 && <p class="hint">Order: {planner.order?.map(agentName).map(readable).join(", ")}</p>}
      {typeof planner.confidence === "number" && <p class="hint">Confidence {Math.round(planner.confidence * 100)} %</p>}
      {(planner.guardrails?.length ?? 0) > 0 && <ul class="hint">{planner.guardrails?.map((rule) => <li key={rule}>{readable(rule)}</li>)}</ul>}
    </details>
  );
}
