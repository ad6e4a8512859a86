/** Which runs worked on which turn of a thread. */

import type { FoundRun } from "../api/runs.ts";
import { contentText } from "../parts/text.ts";
import type { Turn } from "./turns.ts";

/** Characters of a question that a list of runs shows. */
const SHOWN = 200;

const start = (text: string) => [...text.trim()].slice(0, SHOWN).join("").trim();

/** Returns the runs of each turn, newest first: the one that asked, and those that continued it. Runs of abandoned branches are left out. */
export function runsOf(turns: Turn[], runs: FoundRun[]): FoundRun[][] {
  const all: FoundRun[][] = turns.map(() => []);
  const questions = turns.map(({ question }) => question && start(contentText(question.content)));
  let some: FoundRun[] = [];
  for (const run of runs) {
    some.push(run);
    if (run.question === null) continue;
    const turn = questions.lastIndexOf(start(run.question));
    if (turn < 0) {
      // What continued without a question after an abandoned branch tried an earlier turn again.
      some = questions.length === turns.length ? some.filter(({ question }) => question === null) : [];
      continue;
    }
    all[turn] = some;
    some = [];
    // Earlier runs worked on earlier turns.
    questions.length = turn;
  }
  return all;
}
