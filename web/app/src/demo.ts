/** Whether the server is the demo, and what the demo can be asked. */

import { agents } from "./data/agents.ts";
import { useLoad } from "./parts/load.ts";

/** Questions that the demo's script answers. */
export const QUESTIONS = [
  "Which five countries have the most time zones?",
  "Draw how many clock changes there were in each year since 2000.",
  "Between 2010 and 2025, in which time zones did the clocks change most often, how many times, and why?",
];

/** The agents that only the demo has together. */
const AGENTS = ["mcp_agent_timezones", "mcp_agent_sql", "mcp_agent_files"];

let known: Promise<string[]> | undefined;

/** Tells whether the server is the demo; asked once. */
export function useDemo(): boolean {
  const names = useLoad(() => {
    known ??= agents.names();
    known.catch(() => (known = undefined));
    return known;
  }, []);
  return AGENTS.every((name) => names.data?.includes(name));
}
