/** Runs across threads: what was asked, how it ended, when and for how long; filtered by the address. */

import { useState } from "preact/hooks";
import { runs, threads } from "../api/threads.ts";
import type { Run, ThreadHead } from "../api/types.ts";
import { threadTitle } from "../chat/titles.ts";
import { Icon } from "../parts/icon.tsx";
import { useLater } from "../parts/later.ts";
import { useLoad } from "../parts/load.ts";
import { attempt, say } from "../parts/notice.tsx";
import { Empty, Shown } from "../parts/states.tsx";
import { Status } from "../parts/status.tsx";
import { Time, duration, plural } from "../parts/time.tsx";
import { link } from "../router.ts";

interface Row {
  run: Run;
  thread: ThreadHead;
  /** Number within its thread, from 1. */
  number: number;
}

const STATUS: { [status: string]: string } = { pending: "waiting to start", running: "running", success: "done", interrupted: "waiting for a person", error: "failed", timeout: "timed out" };

/** Windows of time that are offered, in hours. */
const WINDOWS: [string, string][] = [["", "Any time"], ["1", "Last hour"], ["24", "Last day"], ["168", "Last week"]];

/** Threads whose runs are read, and how many at a time: a browser has six connections. */
const [THREADS, AT_ONCE] = [50, 4];

/** Reads the runs of the newest threads, newest first. */
async function newest(title: string): Promise<Row[]> {
  const waiting = (await threads.search({ title })).slice(0, THREADS);
  const found: Row[] = [];
  async function work() {
    for (let thread = waiting.shift(); thread; thread = waiting.shift()) {
      const of = thread;
      const list = await runs.list(of.thread_id, 100);
      found.push(...list.map((run, index) => ({ run, thread: of, number: list.length - index })));
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return found.sort((a, b) => b.run.created_at.localeCompare(a.run.created_at));
}

const isOver = ({ status }: Run) => status !== "pending" && status !== "running";
const took = (run: Run) => (isOver(run) && run.updated_at ? new Date(run.updated_at).getTime() - new Date(run.created_at).getTime() : null);

export function RunsView({ query }: { query: URLSearchParams }) {
  const [words, setWords] = useState(query.get("text") ?? "");
  const title = useLater(words.trim());
  const [status, hours] = [query.get("status") ?? "", query.get("hours") ?? ""];
  const [shown, setShown] = useState<Row[] | null>(null);
  const [chosen, setChosen] = useState<Set<string>>(new Set());
  const list = useLoad(() => newest(title), [title], { every: 15_000, keep: true });
  /** Keeps a filter in the address. */
  function put(name: string, value: string) {
    const next = new URLSearchParams(query);
    if (value) next.set(name, value);
    else next.delete(name);
    location.hash = `${link("runs")}${next.size ? `?${next}` : ""}`;
  }
  function meets({ run }: Row) {
    const since = hours ? Date.now() - Number(hours) * 3_600_000 : 0;
    return (!status || run.status === status) && new Date(run.created_at).getTime() >= since;
  }
  async function stop() {
    const some = (list.data ?? []).filter(({ run }) => chosen.has(run.run_id) && !isOver(run));
    if (await attempt(() => Promise.all(some.map(({ run }) => runs.cancel(run.thread_id, run.run_id))))) say(`${plural(some.length, "run")} stopped.`);
    setChosen(new Set());
    list.reload();
  }
  return (
    <div class="view">
      <header class="view-head"><h1>Runs</h1></header>
      <div class="filters">
        <input type="search" placeholder="Search questions" aria-label="Search runs" value={words} onInput={(event) => setWords(event.currentTarget.value)} onBlur={() => put("text", words.trim())} />
        <select aria-label="Status" value={status} onChange={(event) => put("status", event.currentTarget.value)}>
          <option value="">Any status</option>
          {Object.entries(STATUS).map(([value, word]) => <option key={value} value={value}>{word}</option>)}
        </select>
        <select aria-label="Time" value={hours} onChange={(event) => put("hours", event.currentTarget.value)}>{WINDOWS.map(([value, name]) => <option key={value} value={value}>{name}</option>)}</select>
        {chosen.size > 0 && <button type="button" class="danger" onClick={() => void stop()}><Icon name="stop" /> Stop {chosen.size}</button>}
        {chosen.size === 2 && <Compare rows={(list.data ?? []).filter(({ run }) => chosen.has(run.run_id))} />}
      </div>
      <Shown of={list} what="runs">
        {(all) => {
          // Rows stay where they are until the reader wants the new ones.
          const kept = shown ?? all;
          const ids = new Set(kept.map(({ run }) => run.run_id));
          const now = new Map(all.map((row) => [row.run.run_id, row]));
          const fresh = all.filter(({ run }) => !ids.has(run.run_id)).length;
          if (shown === null && all.length > 0) queueMicrotask(() => setShown(all));
          const rows = kept.map((row) => now.get(row.run.run_id)).filter((row): row is Row => row !== undefined && meets(row));
          if (all.length === 0) return <Empty title="No runs yet"><p>Each question you ask is a run.</p><p class="buttons"><a class="button primary" href={link("chat")}>Ask</a></p></Empty>;
          return (
            <>
              {fresh > 0 && <p class="buttons"><button type="button" onClick={() => setShown(all)}>{fresh} new</button></p>}
              {rows.length === 0 ? <Empty title="No matching runs" /> : <Table rows={rows} chosen={chosen} setChosen={setChosen} />}
              <p class="hint small">The runs of the newest {THREADS} threads{title && " that match"}.</p>
            </>
          );
        }}
      </Shown>
    </div>
  );
}

function Compare({ rows: [a, b] }: { rows: Row[] }) {
  if (!a || !b) return null;
  const sides = new URLSearchParams({ with: b.run.thread_id, run: String(a.number), with_run: String(b.number) });
  return <a class="button" href={`${link("compare", a.run.thread_id)}?${sides}`}>Compare</a>;
}

function Table({ rows, chosen, setChosen }: { rows: Row[]; chosen: Set<string>; setChosen: (ids: Set<string>) => void }) {
  function choose(id: string, isChosen: boolean) {
    const next = new Set(chosen);
    if (isChosen) next.add(id);
    else next.delete(id);
    setChosen(next);
  }
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Runs">
      <table class="list-table">
        <thead><tr><th><span class="hidden">Select</span></th><th>Status</th><th>Question</th><th>Run</th><th>Started</th><th class="number">Duration</th><th>Open</th></tr></thead>
        <tbody>
          {rows.map(({ run, thread, number }) => {
            const ms = took(run);
            return (
              <tr key={run.run_id}>
                <td><input type="checkbox" aria-label={`Select run ${number} of ${threadTitle(thread)}`} checked={chosen.has(run.run_id)} onChange={(event) => choose(run.run_id, event.currentTarget.checked)} /></td>
                <td class="num"><Status of={run.status} words={STATUS[run.status] ?? run.status} /> <span class="hint small">{STATUS[run.status] ?? run.status}</span></td>
                <td class="main"><a href={link("chat", run.thread_id)}>{threadTitle(thread)}</a></td>
                <td class="num">{number}</td>
                <td><Time of={run.created_at} /></td>
                <td class="number num">{ms === null ? "–" : duration(ms)}</td>
                <td><a href={`${link("trace", run.thread_id)}?run=${number}`}>Trace</a></td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
