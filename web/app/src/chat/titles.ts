/** What threads are called and how they stand, in words. */

import { signal } from "@preact/signals";
import { threads } from "../api/threads.ts";
import type { ThreadHead, ThreadStatus } from "../api/types.ts";
import { attempt } from "../parts/notice.tsx";
import { askText } from "../parts/confirm.tsx";
import { clip, readable } from "../parts/text.ts";
import { gone, remove as removeLater } from "../parts/removal.ts";
import { go, route } from "../router.ts";
import { threadsChanged } from "./changed.ts";

export const STATUS: { [status in ThreadStatus]: string } = { idle: "done", busy: "working", interrupted: "waiting for you", error: "failed" };

/** The newest threads, which every list reads. */
export const recent = signal<ThreadHead[]>([]);

/** Returns what a thread is called: its title, or the beginning of its first question. */
export function threadTitle(thread: ThreadHead): string {
  return thread.title ? clip(readable(thread.title), 80) : `Thread ${thread.thread_id.slice(0, 8)}`;
}

/** Returns what a thread is called, as far as the lists know it. */
export function nameOfThread(id: string): string {
  const known = recent.value.find((one) => one.thread_id === id);
  return known ? threadTitle(known) : `Thread ${id.slice(0, 8)}`;
}

export async function rename(thread: { thread_id: string }, title: string) {
  const wanted = (await askText("Rename the thread", "Title", title))?.trim();
  if (wanted && (await attempt(() => threads.rename(thread.thread_id, wanted)))) threadsChanged.value += 1;
}

/** Deletes a thread with all its steps, unless that is undone; its views lead to a new question. */
export async function remove({ thread_id }: { thread_id: string }) {
  if (route.value.path[1] === thread_id) go("chat");
  if (await removeLater(threads.address(thread_id))) threadsChanged.value += 1;
}

/** Tells whether a thread is shown in lists: not once it is deleted. */
export const isThere = ({ thread_id }: { thread_id: string }) => !gone.value.has(threads.address(thread_id));
