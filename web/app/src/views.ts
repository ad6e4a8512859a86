/** The views of the page, as the sidebar, the bar of phones and the palette offer them. */

import type { IconName } from "./parts/icon.tsx";
import { agentName } from "./parts/text.ts";
import { link } from "./router.ts";

export interface Place {
  title: string;
  address: string;
  icon: IconName;
}

const place = (title: string, view: string, icon: IconName): Place => ({ title, address: link(view), icon });

export const ASK = place("Ask", "chat", "plus");
export const INBOX = place("Inbox", "inbox", "inbox");
export const THREADS = place("Threads", "threads", "message");
export const ACCOUNT = place("Settings", "account", "settings");

export const GROUPS: [string, Place[]][] = [
  ["Build", [place("Agents", "agents", "bot"), place("Teams", "teams", "users"), place("Graphs", "graphs", "graph"), place("Documents", "documents", "file"), place("Skills", "skills", "wrench"), place("Memory", "memory", "book")]],
  ["Observe", [place("Runs", "runs", "play"), place("Evaluations", "evaluations", "check"), place("Health", "health", "activity"), place("Usage", "usage", "bars")]],
];

export const PLACES: Place[] = [ASK, INBOX, THREADS, ...GROUPS.flatMap(([, places]) => places), ACCOUNT];

/** Views of one thread, by the word of their address; those after the fourth are in its menu. */
export const OF_ONE = [
  ["chat", "Chat"],
  ["inspect", "Steps"],
  ["trace", "Trace"],
  ["graph", "Graph"],
  ["replay", "Replay"],
  ["compare", "Compare"],
  ["again", "Try a prompt"],
] as const;

/** Pictures of the views of one thread. */
export const ICONS: { [view in (typeof OF_ONE)[number][0]]: IconName } = { chat: "message", inspect: "bars", trace: "activity", graph: "graph", replay: "retry", compare: "branch", again: "pencil" };

/** Names what an address shows, as the title of its tab; `threadTitle` names threads. */
export function titleOf([view = "chat", id]: string[], threadTitle: (id: string) => string): string {
  const ofThread = OF_ONE.find(([word]) => word === view)?.[1];
  if (ofThread && id) return view === "chat" ? threadTitle(id) : `${ofThread}: ${threadTitle(id)}`;
  const place = PLACES.find((one) => isHere(one, [view]))?.title ?? "Page not found";
  return id && (view === "agents" || view === "graphs") ? `${agentName(id)}: ${place}` : place;
}

/** Views of a thread, which belong to the threads. */
const OF_THREAD = new Set(["inspect", "trace", "graph", "replay", "compare", "again", "threads"]);

/** Tells whether a place is where the address is. */
export function isHere(to: Place, [view = "chat", id]: string[]): boolean {
  if (to === THREADS) return OF_THREAD.has(view) || (view === "chat" && id !== undefined);
  if (to === ASK) return view === "chat" && id === undefined;
  return to.address === link(view === "fleet" ? "health" : view);
}
