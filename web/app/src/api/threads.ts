/** Threads, their states and runs. */

import { SUPERVISOR, isOwn } from "./graphs.ts";
import { readExact } from "./exact.ts";
import { json, send } from "./http.ts";
import type { Checkpoint, Json, Run, Thread, ThreadHead, ThreadState, ThreadStatus } from "./types.ts";

/** Threads of a page of the list. */
export const PAGE = 50;

export interface ThreadQuery {
  status?: ThreadStatus;
  offset?: number;
  /** Words that the title has. */
  title?: string;
  /** Words that the conversation has. */
  text?: string;
  /** Whether the threads of evaluations are among them. */
  evaluated?: boolean;
}

/** What lists show: states stay where they are. */
const HEAD = ["thread_id", "created_at", "updated_at", "status", "title", "metadata"];

/** The status of a thread, without its title, for which the server may have to read its state. */
const STATUS = ["thread_id", "updated_at", "status", "metadata", "interrupts", "error"];

/** What of a run's events is shown. */
const MODES = ["messages-tuple", "custom", "updates"];

/** Returns the stream modes for a graph. The page can apply the updates of the supervisor graph; of a program's own graph it needs whole states. */
const modesOf = (graph: unknown) => (isOwn(graph) ? ["values", "tasks", ...MODES] : MODES);

const at = (thread: string) => `threads/${encodeURIComponent(thread)}`;

export const threads = {
  search: ({ status, offset = 0, title, text, evaluated = false }: ThreadQuery = {}) =>
    json<ThreadHead[]>("threads/search", {
      select: HEAD,
      limit: PAGE,
      offset,
      sort_by: "updated_at",
      sort_order: "desc",
      ...(!evaluated && { without: ["evaluation"] }),
      ...(status && { status }),
      ...(title && { title }),
      ...(text && { text }),
    }),
  get: async (thread: string) => {
    const text = await (await send(at(thread))).text();
    const read = readExact<Thread>(text);
    // Edited arguments of a call are sent back.
    return Object.keys(read.interrupts ?? {}).length > 0 ? { ...read, interrupts: (JSON.parse(text) as Thread).interrupts ?? {} } : read;
  },
  /** A thread as lists show it; none where there is no such thread. */
  head: async (thread: string) => (await json<ThreadHead[]>("threads/search", { ids: [thread], select: HEAD, limit: 1 }))[0],
  /** The status of a thread, without its state; undefined if there is no such thread. */
  status: async (thread: string) => (await json<Omit<Thread, "values">[]>("threads/search", { ids: [thread], select: STATUS, limit: 1 }))[0],
  /** Creates a thread; with an id, once at most. */
  create: (metadata: Json = {}, id?: string) => json<Thread>("threads", { metadata, ...(id && { thread_id: id, if_exists: "do_nothing" }) }),
  rename: (thread: string, title: string) => threads.annotate(thread, { title }),
  /** Adds to what is noted of a thread. */
  annotate: (thread: string, metadata: { [key: string]: Json }) => json<Thread>(at(thread), { metadata }, "PATCH"),
  address: at,
  history: (thread: string, limit: number, before?: Checkpoint | null) =>
    json<ThreadState[]>(`${at(thread)}/history`, { limit, ...(before && { before: before.checkpoint_id }) }),
  /** Edits the state as a step of its own; at an older checkpoint this makes a branch. */
  update: (thread: string, values: Json, checkpoint?: Checkpoint | null, asNode?: string) =>
    json<{ checkpoint: Checkpoint }>(`${at(thread)}/state`, {
      values,
      ...(checkpoint && { checkpoint_id: checkpoint.checkpoint_id }),
      ...(asNode && { as_node: asNode }),
    }),
  /** Reads a large value of the thread whole. */
  artifact: (thread: string, key: string) =>
    json<{ key: string; content: string }>(`v1/${at(thread)}/artifacts/${key.split("/").map(encodeURIComponent).join("/")}`),
};

export const runs = {
  list: (thread: string, limit = 10) => json<Run[]>(`${at(thread)}/runs?limit=${limit}`),
  get: (thread: string, run: string) => json<Run>(`${at(thread)}/runs/${run}`),
  cancel: (thread: string, run: string) =>
    send(`${at(thread)}/runs/${run}/cancel?wait=0&action=interrupt`, { method: "POST" }),
  start: (thread: string, body: { [key: string]: unknown }) =>
    json<Run>(`${at(thread)}/runs`, {
      assistant_id: SUPERVISOR,
      stream_mode: modesOf(body.assistant_id),
      stream_resumable: true,
      stream_subgraphs: true,
      on_disconnect: "continue",
      ...body,
    }),
  /** Opens the run's events after `last`; `-1` means from its beginning. */
  stream: (thread: string, run: string, graph: string, last: string, signal: AbortSignal) =>
    send(`${at(thread)}/runs/${run}/stream?stream_mode=${modesOf(graph).join(",")}`, {
      headers: { accept: "text/event-stream", "last-event-id": last },
      signal,
    }),
};
