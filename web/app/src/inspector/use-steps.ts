/** The steps of a thread, newest first: those that come while they are shown, older ones as they are asked for. */

import { useRef } from "preact/hooks";
import { threads } from "../api/threads.ts";
import type { ThreadState } from "../api/types.ts";
import { useThread } from "../chat/use-thread.ts";
import { complain } from "../parts/notice.tsx";

/** Steps that are read at a time. */
const PAGE = 100;

/** Pages that are read for a step that an address names. */
const PAGES = 50;

interface Steps {
  all: ThreadState[];
  /** Whether older ones are left. */
  hasMore: boolean;
}

const idOf = (step: ThreadState | undefined) => step?.checkpoint?.checkpoint_id;

/** Tells whether an address names a step: by its number, or by its checkpoint where branches share the number. */
const isNamed = (step: ThreadState, name: string) => idOf(step) === name || String(step.metadata?.step) === name;

/** Finds the step that an address names: the newest where it names none. */
export const namedStep = (steps: ThreadState[], name: string | null) => (name === null ? steps[0] : (steps.find((step) => isNamed(step, name)) ?? steps[0]));

/** Returns how an address names a step. */
export function nameOf(steps: ThreadState[], step: ThreadState): string {
  const number = String(step.metadata?.step);
  return namedStep(steps, number) === step ? number : (idOf(step) ?? number);
}

async function older({ all }: Steps, thread: string): Promise<Steps> {
  const page = await threads.history(thread, PAGE, all.at(-1)?.checkpoint);
  return { all: [...all, ...page], hasMore: page.length === PAGE };
}

/** Puts the newest page before what is known; all of it is new where nothing meets. */
function merged(page: ThreadState[], known: Steps | undefined): Steps {
  const fresh = new Set(page.map(idOf));
  const met = known?.all.findLastIndex((step) => fresh.has(idOf(step))) ?? -1;
  return known && met >= 0 ? { all: [...page, ...known.all.slice(met + 1)], hasMore: known.hasMore } : { all: page, hasMore: page.length === PAGE };
}

/** Reads a thread's steps, back to those that are named. */
export function useSteps(thread: string, names: (string | null)[]) {
  const steps = useThread<Steps>(thread, async (before) => {
    let now = merged(await threads.history(thread, PAGE), before);
    const isMissing = () => names.some((name) => name !== null && !now.all.some((step) => isNamed(step, name)));
    for (let page = 0; page < PAGES && now.hasMore && isMissing(); page += 1) now = await older(now, thread);
    return now;
  });
  const reading = useRef(false);
  async function more() {
    if (!steps.data?.hasMore || reading.current) return;
    reading.current = true;
    try {
      steps.set(await older(steps.data, thread));
    } catch (error) {
      complain(error);
    }
    reading.current = false;
  }
  return { ...steps, more };
}
