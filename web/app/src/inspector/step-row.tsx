/** A step in the list: what it did, for how long and with how many tokens, and what follows. */

import type { ThreadState } from "../api/types.ts";
import { Icon, type IconName } from "../parts/icon.tsx";
import { agentName, readable } from "../parts/text.ts";
import { Time, count, duration } from "../parts/time.tsx";
import { stepWords, waits } from "./step-words.ts";

const ICONS: { [node: string]: IconName } = { supervisor: "graph", qa: "message", preprocess: "play", input: "plus", update: "pencil", fork: "branch" };

interface Props {
  state: ThreadState | undefined;
  /** The step before it, which knows who was to work. */
  by: ThreadState | undefined;
  isBranch: boolean;
  chosen: boolean;
  onChoose: () => void;
}

export function StepRow({ state, by, isBranch, chosen, onChoose }: Props) {
  if (!state) return null;
  const waiting = waits(state);
  const failed = state.tasks.some((task) => task.error);
  const source = state.metadata?.source ?? "";
  const nodes = source === "loop" ? (by?.next.map(agentName).join(", ") ?? "") : "";
  const way = `${nodes ? `${nodes} → ` : ""}${state.next.length ? state.next.map(agentName).join(", ") : "end"}`;
  const tokens = spent(state) - (by ? spent(by) : 0);
  const took = tookOf(state, by);
  const about = [`Step ${state.metadata?.step ?? "?"}`, waiting || way, failed && "failed", tokens > 0 && `${count(tokens)} tokens`].filter(Boolean).join(" · ");
  const words = readable(stepWords(state, by));
  return (
    <button type="button" class={`step-row ${chosen ? "chosen" : ""} ${isBranch ? "step-branch" : ""}`} aria-pressed={chosen} onClick={onChoose} title={isBranch ? `On another branch. ${words}` : words}>
      <Icon name={failed ? "alert" : waiting ? "help" : (ICONS[nodes || source] ?? "bot")} />
      <span class="step-name">{words}</span>
      <span class="step-took">{took !== null && duration(took)}</span>
      <span class="step-about">{readable(about)}</span>
      <span class="step-took"><Time of={state.created_at} /></span>
    </button>
  );
}

/** Returns the milliseconds that a step took; none where another run began in between, since a person was waited for. */
function tookOf(state: ThreadState, by: ThreadState | undefined): number | null {
  if (!by?.created_at || !state.created_at || state.metadata?.source !== "loop" || state.metadata.run_id !== by.metadata?.run_id) return null;
  return new Date(state.created_at).getTime() - new Date(by.created_at).getTime();
}

/** Returns the tokens that a thread took up to a step. */
function spent(state: ThreadState): number {
  const { input_tokens = 0, output_tokens = 0 } = (state.values.spent ?? {}) as { input_tokens?: number; output_tokens?: number };
  return input_tokens + output_tokens;
}
