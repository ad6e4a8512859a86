/** The list of threads: search by words, filter by status, a link each. */

import { useState } from "preact/hooks";
import { PAGE, threads } from "../api/threads.ts";
import type { ThreadHead, ThreadStatus } from "../api/types.ts";
import { useLater } from "../parts/later.ts";
import { useLoad } from "../parts/load.ts";
import { attempt } from "../parts/notice.tsx";
import { Empty, Shown } from "../parts/states.tsx";
import { clip, readable } from "../parts/text.ts";
import { Time } from "../parts/time.tsx";
import { go, link } from "../router.ts";
import { threadsChanged } from "./changed.ts";

const MARKS: { [status in ThreadStatus]: string } = { idle: "✓", busy: "…", interrupted: "?", error: "✗" };
const WORDS: { [status in ThreadStatus]: string } = { idle: "done", busy: "working", interrupted: "waiting for you", error: "failed" };

/** Returns what a thread is called: its title, or the beginning of its first question. */
export function threadTitle(thread: ThreadHead): string {
  return thread.title ? clip(readable(thread.title), 80) : `Thread ${thread.thread_id.slice(0, 8)}`;
}

export function ThreadList({ current }: { current: string | undefined }) {
  const [status, setStatus] = useState<ThreadStatus | "">("");
  const [words, setWords] = useState("");
  const [pages, setPages] = useState(1);
  const title = useLater(words.trim());
  const list = useLoad(
    async () => {
      const offsets = Array.from({ length: pages }, (_, page) => page * PAGE);
      return (await Promise.all(offsets.map((offset) => threads.search({ offset, title, ...(status && { status }) })))).flat();
    },
    [status, pages, title, threadsChanged.value],
    { every: 10_000, keep: true },
  );
  return (
    <nav class="thread-list" aria-label="Threads">
      <p class="buttons">
        <a class="button primary" href={link("chat")}>New thread</a>
      </p>
      <input type="search" placeholder="Search threads" aria-label="Search threads" value={words} onInput={(event) => setWords(event.currentTarget.value)} />
      <select aria-label="Status" value={status} onChange={(event) => setStatus(event.currentTarget.value as ThreadStatus | "")}>
        <option value="">all</option>
        {Object.entries(WORDS).map(([value, word]) => <option key={value} value={value}>{word}</option>)}
      </select>
      <Shown of={list} what="threads">
        {(all) => {
          const wanted = words.trim().toLowerCase();
          // At once among those that are here; the server's answer follows.
          const found = all.filter((thread) => !wanted || (thread.title ?? threadTitle(thread)).toLowerCase().includes(wanted));
          if (all.length === 0 && !title && !status) return <Empty title="No threads yet"><p>Ask a question. Each one starts a thread that survives restarts.</p></Empty>;
          return (
            <ul>
              {found.length === 0 && <li class="empty">No matching threads</li>}
              {found.map((thread) => (
                <li key={thread.thread_id} class={thread.thread_id === current ? "current" : ""}>
                  <a href={link("chat", thread.thread_id)} aria-current={thread.thread_id === current ? "page" : undefined}>
                    <span class={`mark ${thread.status}`} title={WORDS[thread.status]} aria-label={WORDS[thread.status]}>{MARKS[thread.status]}</span>
                    <span class="thread-title">{threadTitle(thread)}</span>
                    <Time of={thread.updated_at} />
                  </a>
                  {thread.thread_id === current && (
                    <span class="row-tools">
                      <button type="button" class="link" onClick={() => rename(thread)}>Rename</button>
                      <button type="button" class="link" onClick={() => remove(thread)}>Delete</button>
                    </span>
                  )}
                </li>
              ))}
              {all.length >= pages * PAGE && (
                <li><button type="button" class="link" onClick={() => setPages(pages + 1)}>Show more</button></li>
              )}
            </ul>
          );
        }}
      </Shown>
    </nav>
  );
}

async function rename(thread: ThreadHead) {
  const title = prompt("Thread title", threadTitle(thread))?.trim();
  if (title && (await attempt(() => threads.rename(thread.thread_id, title)))) threadsChanged.value += 1;
}

async function remove(thread: ThreadHead) {
  if (!confirm(`Delete “${threadTitle(thread)}” with all its steps?`)) return;
  if (await attempt(() => threads.remove(thread.thread_id), "Thread deleted.")) {
    threadsChanged.value += 1;
    go("chat");
  }
}
