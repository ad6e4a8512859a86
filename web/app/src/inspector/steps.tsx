/** A thread step by step, by turn: what each did and how long it took, its state, the difference to any other, branches from it. */

import { useMemo, useRef, useState } from "preact/hooks";
import { threads } from "../api/threads.ts";
import type { Json, ThreadState } from "../api/types.ts";
import { ThreadHead } from "../chat/thread-head.tsx";
import { Icon, type IconName } from "../parts/icon.tsx";
import { useLoad } from "../parts/load.ts";
import { complain } from "../parts/notice.tsx";
import { Empty, Shown } from "../parts/states.tsx";
import { agentName, readable } from "../parts/text.ts";
import { Time, count, duration, plural } from "../parts/time.tsx";
import { StateView } from "./state-view.tsx";
import { VirtualList } from "../parts/virtual.tsx";
import { Changes } from "./changes.tsx";
import { difference } from "./difference.ts";
import { ForkDialog } from "./fork.tsx";
import { Values } from "../parts/values.tsx";

const PAGE = 100;

/** Pixels of a row. */
const ROW = 48;

/** Steps that the list of those to compare with offers; any other is chosen among the steps. */
const LISTED = 200;

/** A row of the list: a step, or the head of the turn that the steps below it belong to. */
type Line = { turn: number } | { step: number };

export function StepsView({ thread, query }: { thread: string; query: URLSearchParams }) {
  const first = useLoad(() => threads.history(thread, PAGE), [thread]);
  const [older, setOlder] = useState<ThreadState[]>([]);
  const [ended, setEnded] = useState(false);
  const [picked, setChosen] = useState<number | null>(null);
  const [against, setAgainst] = useState<number | null>(null);
  const [forking, setForking] = useState<ThreadState | null>(null);
  const steps = useMemo(() => [...(first.data ?? []), ...older], [first.data, older]);
  const lines = useMemo(() => linesOf(steps), [steps]);
  // An address can name a step.
  const named = Math.max(steps.findIndex((step) => String(step.metadata?.step) === query.get("step")), 0);
  const chosen = picked ?? named;
  const byCheckpoint = useMemo(() => new Map(steps.map((step) => [step.checkpoint?.checkpoint_id, step])), [steps]);
  /** Finds the step that another one came from, which on a branch is not the one listed after it. */
  const parentOf = (step: ThreadState | undefined) => (step?.parent_checkpoint ? byCheckpoint.get(step.parent_checkpoint.checkpoint_id) : undefined);
  const onPath = useMemo(() => pathOf(steps, byCheckpoint), [steps, byCheckpoint]);
  const reading = useRef(false);

  async function more() {
    if (ended || reading.current || steps.length < PAGE) return;
    reading.current = true;
    const last = steps[steps.length - 1];
    try {
      const next = await threads.history(thread, PAGE, last?.checkpoint);
      setOlder([...older, ...next]);
      setEnded(next.length < PAGE);
    } catch (error) {
      complain(error);
    }
    reading.current = false;
  }

  function row(line: Line | undefined) {
    if (!line) return null;
    if ("turn" in line) return <p class="step-turn">Turn {line.turn}</p>;
    const state = steps[line.step];
    return <StepRow state={state} by={parentOf(state)} isBranch={state !== undefined && !onPath.has(state)} chosen={line.step === chosen} onChoose={() => setChosen(line.step)} />;
  }

  return (
    <div class="inspector">
      <ThreadHead thread={thread} here="Steps" />
      <Shown of={first} what="steps">
        {() => {
          if (steps.length === 0) return <Empty title="No steps yet" />;
          const step = steps[chosen] ?? steps[0];
          return (
            <div class="columns">
              <section aria-label="Steps">
                <VirtualList class="steps" count={lines.length} height={ROW} label="Steps, newest first" row={(index) => row(lines[index])} onEnd={() => void more()} />
                {!ended && steps.length >= PAGE && <button type="button" class="link older" onClick={() => void more()}>Older steps</button>}
              </section>
              {step && (
                <section class="step" aria-label="Chosen step">
                  <p class="buttons">
                    <button type="button" onClick={() => setForking(step)}><Icon name="branch" /> Run from here</button>
                    <button type="button" aria-pressed={against === chosen} onClick={() => setAgainst(against === chosen ? null : chosen)}>Use as baseline</button>
                    <label class="inline">
                      Compare with
                      <select value={against ?? ""} onChange={(event) => setAgainst(event.currentTarget.value === "" ? null : Number(event.currentTarget.value))}>
                        <option value="">the step before</option>
                        {steps.slice(0, LISTED).map((other, index) => <option key={index} value={index}>{stepTitle(other)}</option>)}
                        {against !== null && against >= LISTED && steps[against] && <option value={against}>{stepTitle(steps[against])}</option>}
                      </select>
                    </label>
                  </p>
                  <Difference from={against === null ? parentOf(step) : steps[against]} to={step} />
                  <Written state={step} />
                  <h2>State</h2>
                  <StateView values={step.values as { [field: string]: Json }} />
                </section>
              )}
            </div>
          );
        }}
      </Shown>
      {forking && <ForkDialog thread={thread} state={forking} onClose={() => setForking(null)} />}
    </div>
  );
}

/** Puts the head of each turn above its newest step. */
function linesOf(steps: ThreadState[]): Line[] {
  let last: number | undefined;
  return steps.flatMap((step, index): Line[] => {
    // An input comes before the turn that it begins has its number.
    const turn = step.metadata?.source === "input" && last !== undefined ? last : step.values.turn;
    const isNew = turn !== undefined && turn !== last;
    last = turn ?? last;
    return isNew && turn !== undefined ? [{ turn }, { step: index }] : [{ step: index }];
  });
}

/** Returns the steps that led to the newest one; those of other branches are not among them. */
function pathOf(steps: ThreadState[], byCheckpoint: Map<string | undefined, ThreadState>): Set<ThreadState> {
  const path = new Set<ThreadState>();
  for (let step = steps[0]; step && !path.has(step); step = step.parent_checkpoint ? byCheckpoint.get(step.parent_checkpoint.checkpoint_id) : undefined) path.add(step);
  return path;
}

function stepTitle(state: ThreadState): string {
  const names = state.tasks.map((task) => agentName(task.name)).join(", ");
  return `${state.metadata?.step ?? "?"} ${names || state.next.map(agentName).join(", ") || "end"}`;
}

const ICONS: { [node: string]: IconName } = { supervisor: "graph", qa: "message", preprocess: "play", input: "plus", edited: "pencil", branch: "branch" };

interface RowProps {
  state: ThreadState | undefined;
  /** The step before it, which knows who was to work. */
  by: ThreadState | undefined;
  isBranch: boolean;
  chosen: boolean;
  onChoose: () => void;
}

/** A step: who worked in it, for how long and with how many tokens, and what follows. */
function StepRow({ state, by, isBranch, chosen, onChoose }: RowProps) {
  if (!state) return null;
  const waits = state.tasks.some((task) => task.interrupts.length > 0);
  const failed = state.tasks.some((task) => task.error);
  const source = state.metadata?.source;
  const workers = source === "loop" ? by?.next.map(agentName).join(", ") : source === "update" ? "edited" : source === "fork" ? "branch" : source;
  const next = state.next.length ? state.next.map(agentName).join(", ") : "end";
  const took = by?.created_at && state.created_at && source === "loop" ? new Date(state.created_at).getTime() - new Date(by.created_at).getTime() : null;
  const tokens = spent(state) - (by ? spent(by) : 0);
  return (
    <button type="button" class={`step-row ${chosen ? "chosen" : ""} ${isBranch ? "step-branch" : ""}`} aria-pressed={chosen} onClick={onChoose} title={isBranch ? "On another branch" : undefined}>
      <Icon name={failed ? "alert" : waits ? "help" : (ICONS[workers ?? ""] ?? "bot")} />
      <span class="step-name">{readable(`${workers || "step"} → ${next}`)}</span>
      <span class="step-took">{took !== null && duration(took)}</span>
      <span class="step-about">Step {state.metadata?.step ?? "?"}{waits && " · waiting for you"}{failed && " · failed"}{tokens > 0 && ` · ${count(tokens)} tokens`}</span>
      <span class="step-took"><Time of={state.created_at} /></span>
    </button>
  );
}

/** Returns the tokens that a thread took up to a step. */
function spent(state: ThreadState): number {
  const { input_tokens = 0, output_tokens = 0 } = (state.values.spent ?? {}) as { input_tokens?: number; output_tokens?: number };
  return input_tokens + output_tokens;
}

function Written({ state }: { state: ThreadState }) {
  if (state.tasks.length === 0) return null;
  return (
    <>
      <h2>Nodes that ran next</h2>
      {state.tasks.map((task) => (
        <details key={task.id} class="card">
          <summary>{agentName(task.name)} {task.error ? <span class="error-text">failed</span> : null}</summary>
          {task.error !== null && <p class="error-text">{readable(String(task.error))}</p>}
          <Values title="Output" value={task.result ?? null} />
        </details>
      ))}
    </>
  );
}

function Difference({ from, to }: { from: ThreadState | undefined; to: ThreadState }) {
  const changes = useMemo(() => difference(from?.values ?? {}, to.values), [from, to]);
  return (
    <>
      <h2>{from ? `What changed since step ${from.metadata?.step ?? "?"}` : "Initial state"} <span class="hint">{plural(changes.length, "change")}</span></h2>
      <Changes changes={changes} />
    </>
  );
}
