/** The state of the supervisor graph, made from the updates of its nodes: they are as small in a long thread as in a new one. No I/O. */

import type { Values } from "../api/types.ts";

/** Id of a question until the server has named it. */
const ASKED = "asked";

/** Returns the state of a thread that is asked something. */
export function withQuestion(values: Values, question: string): Values {
  const messages = [...(values.messages ?? []), { id: ASKED, type: "human", content: question }];
  return { ...values, turn: (values.turn ?? 0) + 1, plan: [], finish_reason: null, messages };
}

/** Returns the state after an update of a node: lists are added to, other fields replaced. An update that the state contains changes nothing. */
export function afterUpdate(values: Values, update: Values): Values {
  // The update that opens a turn has its question.
  const messages = update.turn === undefined ? values.messages : values.messages?.filter(({ id }) => id !== ASKED);
  return {
    ...values,
    ...update,
    messages: joined(messages, update.messages),
    tasks: joined(values.tasks, update.tasks),
    results: joined(values.results, update.results),
    citations: joined(values.citations, update.citations),
  };
}

/** Joins lists; an entry that is known is replaced where it is. */
function joined<Entry extends { id?: string } | { number: number }>(old: Entry[] = [], more: Entry[] = []): Entry[] {
  if (more.length === 0) return old;
  return [...new Map([...old, ...more].map((one) => ["id" in one && one.id ? one.id : JSON.stringify(one), one])).values()];
}

/** Tells whether updates open another turn than the state expects: something else happened in the thread meanwhile. */
export const isOfAnotherTurn = (values: Values, updates: Values[]) => updates.some(({ turn }) => turn !== undefined && turn !== values.turn);

/** Tells whether a state misses what the server has: its question was not taken in. */
export const isUnnamed = (values: Values) => values.messages?.some(({ id }) => id === ASKED) === true;
