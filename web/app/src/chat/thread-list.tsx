/** All threads: search by words of titles and conversations, filter by status, a link each. */

import { useState } from "preact/hooks";
import { isOwn } from "../api/graphs.ts";
import { PAGE, threads, type ThreadQuery } from "../api/threads.ts";
import type { ThreadHead, ThreadStatus } from "../api/types.ts";
import { Icon } from "../parts/icon.tsx";
import { useLoad } from "../parts/load.ts";
import { Empty, Shown } from "../parts/states.tsx";
import { Status } from "../parts/status.tsx";
import { readable } from "../parts/text.ts";
import { Time } from "../parts/time.tsx";
import { useWords } from "../parts/words.ts";
import { link, putQuery, route } from "../router.ts";
import { threadsChanged } from "./changed.ts";
import { byDay } from "./recent-threads.tsx";
import { STATUS, isThere, remove, rename, threadTitle } from "./titles.ts";

export function ThreadsView() {
  const status = (route.value.query.get("status") ?? "") as ThreadStatus | "";
  const evaluated = route.value.query.get("evaluations") === "shown";
  const [words, setWords, title] = useWords();
  const [pages, setPages] = useState(1);
  async function search(words: ThreadQuery) {
    const offsets = Array.from({ length: pages }, (_, page) => page * PAGE);
    return (await Promise.all(offsets.map((offset) => threads.search({ offset, evaluated, ...words, ...(status && { status }) })))).flat();
  }
  const list = useLoad(
    () => search({ title }),
    [status, pages, title, evaluated, threadsChanged.value],
    { every: 10_000, keep: true },
  );
  const conversations = useLoad(
    async () => (title ? search({ text: title }) : []),
    [status, pages, title, evaluated, threadsChanged.value],
    { keep: true },
  );
  return (
    <section class="view narrow thread-list" aria-label="Threads">
      <header class="view-head">
        <h1>Threads</h1>
        <p class="buttons"><a class="button primary" href={link("chat")}><Icon name="plus" /> Ask</a></p>
      </header>
      <div class="filters">
        <input type="search" placeholder="Search threads" aria-label="Search threads" value={words} onInput={(event) => setWords(event.currentTarget.value)} />
        <select aria-label="Status" value={status} onChange={(event) => putQuery({ status: event.currentTarget.value })}>
          <option value="">Any status</option>
          {Object.entries(STATUS).map(([value, word]) => <option key={value} value={value}>{word}</option>)}
        </select>
        <label class="choice"><input type="checkbox" checked={evaluated} onChange={(event) => putQuery({ evaluations: event.currentTarget.checked ? "shown" : null })} /> Include evaluations</label>
      </div>
      <Shown of={list} what="threads">
        {(all) => {
          const wanted = words.trim().toLowerCase();
          // At once among those that are here; the server's answer follows.
          const found = all.filter((thread) => isThere(thread) && (!wanted || (thread.title ?? threadTitle(thread)).toLowerCase().includes(wanted)));
          if (all.length === 0 && !title && !status) return <Empty title="No threads yet"><p>Ask a question. Each one starts a thread that survives restarts.</p><p class="buttons"><a class="button primary" href={link("chat")}>Ask</a></p></Empty>;
          const listed = new Set(found.map((thread) => thread.thread_id));
          const further = wanted ? (conversations.data ?? []).filter((thread) => isThere(thread) && !listed.has(thread.thread_id)) : [];
          if (found.length === 0 && further.length === 0) return <Empty title="No matching threads" />;
          return (
            <>
              {byDay(found).map(([day, some]) => (
                <section key={day}>
                  <h2>{day}</h2>
                  <ul class="rows">{some.map((thread) => <Row key={thread.thread_id} thread={thread} />)}</ul>
                </section>
              ))}
              {further.length > 0 && (
                <section aria-label="In conversations">
                  <h2>In conversations</h2>
                  <ul class="rows">{further.map((thread) => <Row key={thread.thread_id} thread={thread} />)}</ul>
                </section>
              )}
              {Math.max(all.length, conversations.data?.length ?? 0) >= pages * PAGE && <p class="buttons"><button type="button" onClick={() => setPages(pages + 1)}>Show more</button></p>}
            </>
          );
        }}
      </Shown>
    </section>
  );
}

function Row({ thread }: { thread: ThreadHead }) {
  const title = threadTitle(thread);
  return (
    <li class="row">
      <a href={link("chat", thread.thread_id)}>
        <Status of={thread.status} words={STATUS[thread.status]} />
        <span class="row-title">{title} {isOwn(thread.metadata?.graph_id) && <span class="chip">{readable(thread.metadata.graph_id)}</span>}{thread.metadata?.evaluation && <span class="chip">evaluation</span>}</span>
        <span class="row-about">{thread.status !== "idle" && <span class={`mark ${thread.status}`}>{STATUS[thread.status]} · </span>}<Time of={thread.updated_at} /></span>
      </a>
      <span class="row-tools">
        <a class="button square" href={link("trace", thread.thread_id)} aria-label={`Trace of ${title}`} title="Trace"><Icon name="activity" /></a>
        <button type="button" class="square" aria-label={`Rename ${title}`} title="Rename" onClick={() => void rename(thread, title)}><Icon name="pencil" /></button>
        <button type="button" class="square" aria-label={`Delete ${title}`} title="Delete" onClick={() => void remove(thread)}><Icon name="trash" /></button>
      </span>
    </li>
  );
}
