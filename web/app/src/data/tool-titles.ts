/** What tools are called on the page: the titles that their servers give them, or else their names. */

import { signal } from "@preact/signals";
import { toolName } from "../chat/calls.ts";
import { agents } from "./agents.ts";

/** Titles by the whole names of tools, such as `notes.append_note`; none before anything was asked. */
const titles = signal<Map<string, string> | null>(null);

async function read() {
  titles.value = new Map();
  const { agents: all } = await agents.list();
  titles.value = new Map(all.flatMap(({ server, tools }) => tools.flatMap(({ name, title }) => (title ? [[`${server}.${name}`, title] as const] : []))));
}

/** Returns the title of a tool; nothing where its server gives it none. */
export function titleOfTool(tool: string): string | undefined {
  // Without an answer, names are shown.
  if (titles.peek() === null) void read().catch(() => {});
  return titles.value?.get(tool);
}

/** Returns what a tool is called: its title, or else its name without its server. */
export const calledTool = (tool: string) => titleOfTool(tool) ?? toolName(tool);

/** Says what a call does: `append_note` is “append note”, and the title “Read a file” is “read a file”. */
export function deedOf(tool: string): string {
  const title = titleOfTool(tool);
  if (title) return title.replace(/^\p{Lu}(?=\p{Ll})/u, (letter) => letter.toLowerCase());
  return toolName(tool).replace(/([a-z])([A-Z])/g, "$1 $2").replace(/[_-]+/g, " ").trim().toLowerCase();
}
