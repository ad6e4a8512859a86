/** A thread step by step, by turn: what each did and how long it took, its state, the difference to any other, branches from it. */

import { useMemo, useState } from "preact/hooks";
import type { Json, ThreadState } from "../api/types.ts";
import { ThreadHead } from "../chat/thread-head.tsx";
import { Icon } from "../parts/icon.tsx";
import { Empty, Shown } from "../parts/states.tsx";
import { agentName, readable } from "../parts/text.ts";
import { plural } from "../parts/time.tsx";
import { StateView } from "./state-view.tsx";
import { VirtualList } from "../parts/virtual.tsx";
import { Changes } from "./changes.tsx";
import { difference } from "./difference.ts";
import { ForkDialog } from "./fork.tsx";
import { Values } from "../parts/values.tsx";
import { putQuery } from "../router.ts";
import { StepRow } from "./step-row.tsx";
import { nameOf, namedStep, useSteps } from "./use-steps.ts";

/** Pixels of a row. */
const ROW = 48;

/** Steps that the list of those to compare with offers; any other is chosen among the steps. */
const LISTED = 200;

/** A row of the list: a step, or the head of the turn that the steps below it belong to. */
type Line = { turn: number } | { step: number };

export function StepsView({ thread, query }: { thread: string; query: URLSearchParams }) {
  const [named, baseline] = [query.get("step"), query.get("baseline")];
  const read = useSteps(thread, [named, baseline]);
  const [forking, setForking] = useState<ThreadState | null>(null);
  const steps = useMemo(() => read.data?.all ?? [], [read.data]);
  const lines = useMemo(() => linesOf(steps), [steps]);
  const step = namedStep(steps, named);
  const against = baseline === null ? undefined : namedStep(steps, baseline);
  const byCheckpoint = useMemo(() => new Map(steps.map((step) => [step.checkpoint?.checkpoint_id, step])), [steps]);
  /** Finds the step that another one came from, which on a branch is not the one listed after it. */
  const parentOf = (step: ThreadState | undefined) => (step?.parent_checkpoint ? byCheckpoint.get(step.parent_checkpoint.checkpoint_id) : undefined);
  const onPath = useMemo(() => pathOf(steps, byCheckpoint), [steps, byCheckpoint]);
  const compare = (with_: ThreadState | undefined) => putQuery({ baseline: with_ ? nameOf(steps, with_) : null });

  function row(line: Line | undefined) {
    if (!line) return null;
    if ("turn" in line) return <p class="step-turn">Turn {line.turn}</p>;
    const state = steps[line.step];
    return <StepRow state={state} by={parentOf(state)} isBranch={state !== undefined && !onPath.has(state)} chosen={state === step} onChoose={() => state && putQuery({ step: nameOf(steps, state) })} />;
  }

  return (
    <div class="inspector">
      <ThreadHead thread={thread} here="Steps" />
      <Shown of={read} what="steps">
        {({ hasMore }) => {
          if (steps.length === 0) return <Empty title="No steps yet" />;
          return (
            <div class="columns">
              <section aria-label="Steps">
                <VirtualList class="steps" count={lines.length} height={ROW} label="Steps, newest first" row={(index) => row(lines[index])} onEnd={() => void read.more()} />
                {hasMore && <button type="button" class="link older" onClick={() => void read.more()}>Older steps</button>}
              </section>
              {step && (
                <section class="step" aria-label="Chosen step">
                  <p class="buttons">
                    <button type="button" onClick={() => setForking(step)}><Icon name="branch" /> Run from here</button>
                    <button type="button" aria-pressed={against === step} onClick={() => compare(against === step ? undefined : step)}>Use as baseline</button>
                    <label class="inline">
                      Compare with
                      <select value={against ? steps.indexOf(against) : ""} onChange={(event) => compare(event.currentTarget.value === "" ? undefined : steps[Number(event.currentTarget.value)])}>
                        <option value="">the step before</option>
                        {steps.slice(0, LISTED).map((other, index) => <option key={index} value={index}>{stepTitle(other)}</option>)}
                        {against && steps.indexOf(against) >= LISTED && <option value={steps.indexOf(against)}>{stepTitle(against)}</option>}
                      </select>
                    </label>
                  </p>
                  <Difference from={against ?? parentOf(step)} to={step} />
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
