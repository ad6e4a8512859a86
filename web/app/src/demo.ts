/** Whether the server is the demo, and what the demo can be asked. */

import { json } from "./api/http.ts";
import { useLoad } from "./parts/load.ts";

/** Questions that the demo's script answers. */
export const QUESTIONS = [
  "Which five countries have the most time zones?",
  "Draw how many clock changes there were in each year since 2000.",
  "Between 2010 and 2025, in which time zones did the clocks change most often, how many times, and why?",
];

let known: Promise<{ demo: boolean }> | undefined;

/** Tells whether the server is the demo, once that is known; asked once. */
export function useDemo(): boolean | undefined {
  const me = useLoad(() => {
    known ??= json<{ demo: boolean }>("v1/auth/me");
    known.catch(() => (known = undefined));
    return known;
  }, []);
  return me.data?.demo;
}
