/** Threads, their states and runs. */

import { json, send } from "./http.ts";
import type { Assistant, Checkpoint, GraphShape, Json, Run, Thread, ThreadState, ThreadStatus } from "./types.ts";

/** Threads of a page of the list. */
export const PAGE = 50;

export interface ThreadQuery {
  status?: ThreadStatus;
  offset?: number;
  ids?: string[];
}

const at = (thread: string) => `threads/${encodeURIComponent(thread)}`;

export const threads = {
  search: ({ status, offset = 0, ids }: ThreadQuery = {}) =>
    json<Thread[]>("threads/search", {
      limit: PAGE,
      offset,
      sort_by: "updated_at",
      sort_order: "desc",
      ...(status && { status }),
      ...(ids && { ids }),
    }),
  get: (thread: string) => json<Thread>(at(thread)),
  create: (metadata: Json = {}) => json<Thread>("threads", { metadata }),
  rename: (thread: string, title: string) => json<Thread>(at(thread), { metadata: { title } }, "PATCH"),
  remove: (thread: string) => json<null>(at(thread), undefined, "DELETE"),
  state: (thread: string) => json<ThreadState>(`${at(thread)}/state`),
  stateAt: (thread: string, checkpoint: string) =>
    json<ThreadState>(`${at(thread)}/state/${encodeURIComponent(checkpoint)}`),
  history: (thread: string, limit: number, before?: Checkpoint | null) =>
    json<ThreadState[]>(`${at(thread)}/history`, { limit, ...(before && { before: before.checkpoint_id }) }),
  /** Edits the state as a step of its own; at an older checkpoint this makes a branch. */
  update: (thread: string, values: Json, checkpoint?: Checkpoint | null, asNode?: string) =>
    json<{ checkpoint: Checkpoint }>(`${at(thread)}/state`, {
      values,
      ...(checkpoint && { checkpoint_id: checkpoint.checkpoint_id }),
      ...(asNode && { as_node: asNode }),
    }),
  copy: (thread: string) => json<Thread>(`${at(thread)}/copy`, {}),
};

export const runs = {
  list: (thread: string) => json<Run[]>(`${at(thread)}/runs?limit=10`),
  get: (thread: string, run: string) => json<Run>(`${at(thread)}/runs/${run}`),
  cancel: (thread: string, run: string) =>
    send(`${at(thread)}/runs/${run}/cancel?wait=0&action=interrupt`, { method: "POST" }),
  start: (thread: string, body: { [key: string]: unknown }) =>
    json<Run>(`${at(thread)}/runs`, {
      assistant_id: "swarm",
      stream_mode: ["values", "messages-tuple", "tasks", "custom", "updates"],
      stream_resumable: true,
      stream_subgraphs: true,
      on_disconnect: "continue",
      ...body,
    }),
  /** Opens the run's events after `last`; `-1` means from its beginning. */
  stream: (thread: string, run: string, last: string, signal: AbortSignal) =>
    send(`${at(thread)}/runs/${run}/stream`, {
      headers: { accept: "text/event-stream", "last-event-id": last },
      signal,
    }),
};

export const assistants = {
  search: () => json<Assistant[]>("assistants/search", { limit: 100 }),
  graph: (id: string) => json<GraphShape>(`assistants/${encodeURIComponent(id)}/graph`),
};
