/** A thread step by step: what each wrote, its state, the difference to any other, branches from it. */

import { useMemo, useRef, useState } from "preact/hooks";
import { threads } from "../api/threads.ts";
import type { ThreadState } from "../api/types.ts";
import { JsonView } from "../parts/json-view.tsx";
import { useLoad } from "../parts/load.ts";
import { complain } from "../parts/notice.tsx";
import { Empty, Shown } from "../parts/states.tsx";
import { agentName, readable } from "../parts/text.ts";
import { Time, plural } from "../parts/time.tsx";
import { VirtualList } from "../parts/virtual.tsx";
import { Changes } from "./changes.tsx";
import { difference } from "./difference.ts";
import { ForkDialog } from "./fork.tsx";
import { InspectorHead } from "./head.tsx";

const PAGE = 100;

/** Steps that the list of those to compare with offers; any other is chosen among the steps. */
const LISTED = 200;

export function StepsView({ thread, query }: { thread: string; query: URLSearchParams }) {
  const first = useLoad(() => threads.history(thread, PAGE), [thread]);
  const [older, setOlder] = useState<ThreadState[]>([]);
  const [ended, setEnded] = useState(false);
  const [picked, setChosen] = useState<number | null>(null);
  const [against, setAgainst] = useState<number | null>(null);
  const [forking, setForking] = useState<ThreadState | null>(null);
  const steps = useMemo(() => [...(first.data ?? []), ...older], [first.data, older]);
  // An address can name a step.
  const named = Math.max(steps.findIndex((step) => String(step.metadata?.step) === query.get("step")), 0);
  const chosen = picked ?? named;
  const byCheckpoint = useMemo(() => new Map(steps.map((step) => [step.checkpoint?.checkpoint_id, step])), [steps]);
  /** Finds the step that another one came from, which on a branch is not the one listed after it. */
  const parentOf = (step: ThreadState | undefined) => (step?.parent_checkpoint ? byCheckpoint.get(step.parent_checkpoint.checkpoint_id) : undefined);
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

  return (
    <div class="inspector">
      <InspectorHead thread={thread} title="Steps" />
      <Shown of={first} what="steps">
        {() => {
          if (steps.length === 0) return <Empty title="No steps yet" />;
          const step = steps[chosen] ?? steps[0];
          return (
            <div class="columns">
              <section aria-label="Steps">
                <VirtualList class="steps" count={steps.length} height={52} label="Steps, newest first" row={(index) => <StepRow state={steps[index]} by={parentOf(steps[index])} chosen={index === chosen} onChoose={() => setChosen(index)} />} onEnd={() => void more()} />
                {!ended && steps.length >= PAGE && <button type="button" class="link" onClick={() => void more()}>Older steps</button>}
              </section>
              {step && (
                <section class="step" aria-label="Chosen step">
                  <p class="buttons">
                    <button type="button" onClick={() => setForking(step)}>Branch from here</button>
                    <button type="button" aria-pressed={against === chosen} onClick={() => setAgainst(against === chosen ? null : chosen)}>Compare other steps with this</button>
                    <label>
                      Compare with
                      <select value={against ?? ""} onChange={(event) => setAgainst(event.currentTarget.value === "" ? null : Number(event.currentTarget.value))}>
                        <option value="">the step before</option>
                        {steps.slice(0, LISTED).map((other, index) => <option key={index} value={index}>{stepTitle(other)}</option>)}
                        {against !== null && against >= LISTED && steps[against] && <option value={against}>{stepTitle(steps[against])}</option>}
                      </select>
                    </label>
                  </p>
                  <Written state={step} />
                  <Difference from={against === null ? parentOf(step) : steps[against]} to={step} />
                  <h2>State</h2>
                  <JsonView value={step.values} />
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

function stepTitle(state: ThreadState): string {
  const names = state.tasks.map((task) => agentName(task.name)).join(", ");
  return `${state.metadata?.step ?? "?"} ${names || state.next.map(agentName).join(", ") || "end"}`;
}

/** A step: who worked in it, and what follows; `by` is the step before it, which knows who was to work. */
function StepRow({ state, by, chosen, onChoose }: { state: ThreadState | undefined; by: ThreadState | undefined; chosen: boolean; onChoose: () => void }) {
  if (!state) return null;
  const waits = state.tasks.some((task) => task.interrupts.length > 0);
  const failed = state.tasks.some((task) => task.error);
  const source = state.metadata?.source;
  const workers = source === "loop" ? by?.next.map(agentName).join(", ") : source === "update" ? "edited" : source === "fork" ? "branch" : source;
  const next = state.next.length ? state.next.map(agentName).join(", ") : "end";
  return (
    <button type="button" class={chosen ? "step-row chosen" : "step-row"} aria-pressed={chosen} onClick={onChoose}>
      <span class="step-number">{state.metadata?.step ?? "?"}</span>
      <span class="step-name">{readable(`${workers || "step"} → ${next}`)}</span>
      <span class="hint">{waits && "waits"} {failed && "failed"}</span>
      <Time of={state.created_at} />
    </button>
  );
}

function Written({ state }: { state: ThreadState }) {
  if (state.tasks.length === 0) return null;
  return (
    <>
      <h2>Nodes that ran</h2>
      {state.tasks.map((task) => (
        <details key={task.id}>
          <summary>{agentName(task.name)} {task.error ? <span class="mark bad">✗</span> : null}</summary>
          {task.error !== null && <p class="error-text">{readable(String(task.error))}</p>}
          <JsonView value={task.result ?? null} />
        </details>
      ))}
    </>
  );
}

function Difference({ from, to }: { from: ThreadState | undefined; to: ThreadState }) {
  const changes = useMemo(() => difference(from?.values ?? {}, to.values), [from, to]);
  return (
    <>
      <h2>{from ? `What changed since step ${from.metadata?.step ?? "?"}` : "Initial state"} <span class="hint">{plural(changes.length, "place")}</span></h2>
      <Changes changes={changes} />
    </>
  );
}
