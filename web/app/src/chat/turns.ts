/** Where the turns of a thread began, and how they ended. */

import { threads } from "../api/threads.ts";
import type { Checkpoint, Message, Values } from "../api/types.ts";

/** Steps that are read at a time. */
const PAGE = 50;

/** Pages that are read at most. */
const PAGES = 200;

/** Where a message came into a thread. */
interface Arrival {
  /** The step before it; none where it is the thread's first. */
  before: Checkpoint | null;
  /** The first step that has it. */
  at: Checkpoint | null;
}

/** Finds where a message came in. */
export async function arrival(thread: string, message: Message): Promise<Arrival> {
  let at: Checkpoint | null = null;
  for (let page = 0; page < PAGES; page += 1) {
    const states = await threads.history(thread, PAGE, at);
    for (const state of states) {
      if (!state.values.messages?.some((known) => known.id === message.id)) return { before: state.values.messages?.length ? state.checkpoint : null, at };
      at = state.checkpoint;
    }
    if (states.length < PAGE) break;
  }
  return { before: null, at };
}

/** Ends of turns that brought no answer to the question. */
const EARLY = new Set(["no_progress", "limit", "model_failed", "no_agents", "cancelled"]);

/** Says why the newest turn ended before its time; null where it did not. */
export function endedEarly(values: Values | null): string | null {
  const reason = values?.finish_reason;
  if (typeof reason !== "object" || reason === null || !EARLY.has(reason.reason)) return null;
  return reason.text || reason.reason.replaceAll("_", " ");
}
