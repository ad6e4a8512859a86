/** The turns of a thread: what was asked, done and answered in each, where it began, and how it ended. */

import { isOwn } from "../api/graphs.ts";
import { runs, threads } from "../api/threads.ts";
import type { Citation, Message, ThreadState, Values } from "../api/types.ts";
import type { Work } from "./checklist.ts";

export interface Turn {
  /** Nothing where the thread begins with an answer. */
  question: Message | null;
  /** Questions of the supervisor, with what was answered. */
  clarifications: Message[];
  answers: Message[];
  work: Work;
  citations: Citation[];
  isNewest: boolean;
  /** Its number, from 1. */
  number: number;
}

/** What agents say is shown with their work. */
const isOfAgent = (message: Message) => message.type !== "human" && Boolean(message.name) && message.name !== "qa";

/** The answer to a question of the supervisor continues the turn that asked it. */
const isClarification = (message: Message) => message.name === "supervisor" || (message.type === "human" && message.id?.endsWith(".clarification") === true);

/** Takes a thread's state apart into its turns, oldest first. */
export function turnsOf(values: Values): Turn[] {
  const all: Pick<Turn, "question" | "clarifications" | "answers">[] = [];
  const begin = (question: Message | null) => {
    const turn = { question, clarifications: [], answers: [] };
    all.push(turn);
    return turn;
  };
  for (const message of values.messages ?? []) {
    if (isClarification(message)) (all.at(-1) ?? begin(null)).clarifications.push(message);
    else if (message.type === "human") begin(message);
    else if (!isOfAgent(message)) (all.at(-1) ?? begin(null)).answers.push(message);
  }
  // A question that was not taken in yet opens the next turn: nothing was done in it.
  const isNew = all.length === (values.turn ?? 0) + 1 && all.at(-1)?.answers.length === 0;
  const newest = isNew ? all.length : values.turn;
  // Where each turn has one question, what was done in earlier ones is known by number.
  const isNumbered = all.length === newest;
  return all.map((turn, index) => {
    const isNewest = index === all.length - 1;
    const isOf = ({ turn: number }: { turn?: number }) => (isNewest ? number === undefined || number === newest : isNumbered && number === index + 1);
    const work = { plan: isNewest && !isNew ? (values.plan ?? []) : [], planner: isNewest ? (values.planner ?? null) : null, tasks: (values.tasks ?? []).filter(isOf), results: (values.results ?? []).filter(isOf) };
    return { ...turn, work, citations: (values.citations ?? []).filter(isOf), isNewest, number: index + 1 };
  });
}

/** Names the step at which a run begins a branch; none where it continues. */
export const from = (state: ThreadState | null | undefined) => state?.checkpoint && { checkpoint_id: state.checkpoint.checkpoint_id };

/** Steps that are read at a time. */
const PAGE = 50;

/** Pages that are read at most. */
const PAGES = 200;

/** Where a message came into a thread. */
export interface Arrival {
  /** The state before it; none where it is the thread's first. */
  before: ThreadState | null;
  /** The first state that has it. */
  at: ThreadState | null;
}

/** Finds where a message came in. */
export async function arrival(thread: string, message: Message): Promise<Arrival> {
  let at: ThreadState | null = null;
  for (let page = 0; page < PAGES; page += 1) {
    const states: ThreadState[] = await threads.history(thread, PAGE, at?.checkpoint);
    for (const state of states) {
      if (!state.values.messages?.some((known) => known.id === message.id)) return { before: state.values.messages?.length ? state : null, at };
      at = state;
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

/** Tries the newest turn of a thread again: from its question if it ended early, or else from where it failed. */
export async function retry(thread: string, graph: string) {
  const { values } = await threads.get(thread);
  const asked = endedEarly(values ?? null) && turnsOf(values ?? {}).at(-1)?.question;
  const at = asked ? (await arrival(thread, asked)).at : null;
  await runs.start(thread, { input: null, ...from(at), ...(isOwn(graph) && { assistant_id: graph }) });
}
