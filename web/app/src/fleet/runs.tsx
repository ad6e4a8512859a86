/** Runs across threads: what was asked, how it ended, for how long and how much; filtered by the address. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { FILTERS, type FoundRun, findRuns } from "../api/runs.ts";
import { runs as ofThread } from "../api/threads.ts";
import { retry } from "../chat/turns.ts";
import { agents } from "../data/agents.ts";
import { Icon } from "../parts/icon.tsx";
import { ListTable } from "../parts/list-table.tsx";
import { useLater } from "../parts/later.ts";
import { useLoad } from "../parts/load.ts";
import { dollars } from "../parts/money.ts";
import { attempt, say } from "../parts/notice.tsx";
import { Empty, Shown } from "../parts/states.tsx";
import { Status } from "../parts/status.tsx";
import { agentName, clip, readable } from "../parts/text.ts";
import { Time, count, duration, plural } from "../parts/time.tsx";
import { link } from "../router.ts";
import { ColumnsMenu, SavedViews, useColumns, OPTIONAL, type Column } from "./saved-views.tsx";

const STATUS: { [status: string]: string } = { pending: "waiting to start", running: "running", success: "done", interrupted: "waiting for a person", error: "failed", timeout: "timed out" };

/** Windows of time that are offered, in hours. */
const WINDOWS: [string, string][] = [["", "Any time"], ["1", "Last hour"], ["24", "Last day"], ["168", "Last week"]];

/** Filters that are typed, beside the words. */
const TYPED = [["user", "User"], ["graph", "Graph"], ["error", "Error contains"], ["min_cost_usd", "Costs at least, in $"]] as const;

const isFailed = ({ status }: FoundRun) => status === "error" || status === "timeout";
const isOver = ({ status }: FoundRun) => status !== "pending" && status !== "running";
const titleOf = (run: FoundRun) => clip(readable(run.question ?? run.title ?? `Thread ${run.thread_id.slice(0, 8)}`), 120);

/** Makes the query of the server of that of the address. */
function filtersOf(query: URLSearchParams): URLSearchParams {
  const filters = new URLSearchParams();
  for (const name of FILTERS) {
    const value = query.get(name)?.trim();
    if (value) filters.set(name, value);
  }
  const hours = Number(query.get("hours"));
  if (hours > 0) filters.set("since", new Date(Date.now() - hours * 3_600_000).toISOString());
  return filters;
}

export function RunsView({ query }: { query: URLSearchParams }) {
  const [typed, setTyped] = useState<{ [name: string]: string }>({});
  const [pages, setPages] = useState(1);
  const [first, setFirst] = useState<{ of: string; runs: FoundRun[] } | null>(null);
  const [chosen, setChosen] = useState<Set<string>>(new Set());
  const columns = useColumns();
  const words = useLater(typed);
  const wanted = new URLSearchParams(query);
  for (const [name, value] of Object.entries(words)) wanted.set(name, value);
  const of = `${wanted}`;
  const names = useLoad(() => agents.names(), []);
  const list = useLoad(
    async () => {
      const filters = filtersOf(wanted);
      let page = await findRuns(filters);
      const all = page.runs;
      for (let number = 1; number < pages && page.next; number += 1) {
        page = await findRuns(filters, page.next);
        all.push(...page.runs);
      }
      return { of, all, hasMore: page.next !== null };
    },
    [of, pages],
    { every: 15_000, keep: true },
  );
  /** Keeps a filter in the address. */
  function put(name: string, value: string) {
    const next = new URLSearchParams(query);
    if (value) next.set(name, value);
    else next.delete(name);
    location.hash = `${link("runs")}${next.size ? `?${next}` : ""}`;
  }
  const field = (name: string) => ({
    value: typed[name] ?? query.get(name) ?? "",
    onInput: (event: { currentTarget: HTMLInputElement }) => setTyped({ ...typed, [name]: event.currentTarget.value }),
    // From then on the address says it.
    onBlur: (event: { currentTarget: HTMLInputElement }) => {
      if (typed[name] !== undefined) put(name, event.currentTarget.value.trim());
      setTyped(Object.fromEntries(Object.entries(typed).filter(([other]) => other !== name)));
    },
  });
  const selected = (list.data?.all ?? []).filter((run) => chosen.has(run.run_id));
  async function stop() {
    const some = selected.filter((run) => !isOver(run));
    if (await attempt(() => Promise.all(some.map((run) => ofThread.cancel(run.thread_id, run.run_id))))) say(`${plural(some.length, "run")} stopped.`);
    setChosen(new Set());
    list.reload();
  }
  /** Tries what failed again, where it is the newest of its thread. */
  async function retrySelected() {
    const failed = selected.filter(isFailed);
    let started = 0;
    await attempt(() => Promise.all(failed.map(async (run) => {
      // Where another run followed, it is that one which would be tried again.
      if ((await ofThread.list(run.thread_id, 1))[0]?.run_id !== run.run_id) return;
      await retry(run.thread_id, run.graph_id);
      started += 1;
    })));
    say(`${plural(started, "run")} started.${started < failed.length ? " The others were not: their threads have newer runs, or they failed to start." : ""}`);
    setChosen(new Set());
    list.reload();
  }
  const failed = selected.filter(isFailed).length;
  const active = selected.filter((run) => !isOver(run)).length;
  const further = [...TYPED.map(([name]) => name), "agent"].filter((name) => wanted.get(name)).length;
  const isFiltered = filtersOf(wanted).size > 0;
  return (
    <div class="view">
      <header class="view-head"><h1>Runs</h1></header>
      <div class="filters">
        <input type="search" placeholder="Search conversations" aria-label="Search conversations" {...field("text")} />
        <select aria-label="Status" value={query.get("status") ?? ""} onChange={(event) => put("status", event.currentTarget.value)}>
          <option value="">Any status</option>
          {Object.entries(STATUS).map(([value, word]) => <option key={value} value={value}>{word}</option>)}
        </select>
        <select aria-label="Time" value={query.get("hours") ?? ""} onChange={(event) => put("hours", event.currentTarget.value)}>{WINDOWS.map(([value, name]) => <option key={value} value={value}>{name}</option>)}</select>
        <select aria-label="Agent" value={query.get("agent") ?? ""} onChange={(event) => put("agent", event.currentTarget.value)}>
          <option value="">Any agent</option>
          {(names.data ?? []).map((name) => <option key={name} value={name}>{readable(agentName(name))}</option>)}
        </select>
        <ColumnsMenu {...columns} />
        {active > 0 && <button type="button" class="danger" onClick={() => void stop()}><Icon name="stop" /> Stop {active}</button>}
        {failed > 0 && <button type="button" onClick={() => void retrySelected()}><Icon name="retry" /> Retry {failed}</button>}
        {selected.length === 2 && <Compare runs={selected} />}
      </div>
      <SavedViews query={`${query}`} />
      <details class="further-filters" open={further > 0}>
        <summary>More filters{further > 0 && ` (${further})`}</summary>
        <div class="filters">{TYPED.map(([name, label]) => <label key={name}>{label}<input inputMode={name === "min_cost_usd" ? "decimal" : "text"} {...field(name)} /></label>)}</div>
      </details>
      <Shown of={list} what="runs">
        {({ of: found, all, hasMore }) => {
          // Rows stay where they are until the reader wants the new ones; what is read later follows them.
          const shown = first?.of === found ? first.runs : all;
          const last = shown.at(-1)?.created_at ?? "";
          const kept = [...shown, ...all.filter((run) => run.created_at < last)];
          const now = new Map(all.map((run) => [run.run_id, run]));
          const ids = new Set(kept.map((run) => run.run_id));
          const fresh = all.filter((run) => !ids.has(run.run_id)).length;
          if (first?.of !== found) queueMicrotask(() => setFirst({ of: found, runs: all }));
          const rows = kept.map((run) => now.get(run.run_id)).filter((run): run is FoundRun => run !== undefined);
          if (rows.length === 0 && isFiltered) return <Empty title="No matching runs" />;
          if (rows.length === 0) return <Empty title="No runs yet"><p>Each question you ask is a run.</p><p class="buttons"><a class="button primary" href={link("chat")}>Ask</a></p></Empty>;
          return (
            <>
              {fresh > 0 && <p class="buttons"><button type="button" onClick={() => setFirst({ of: found, runs: all })}>{fresh} new</button></p>}
              <Table hidden={columns.hidden} runs={rows} chosen={chosen} setChosen={setChosen} />
              {hasMore && <p class="buttons"><button type="button" onClick={() => setPages(pages + 1)}>Show more</button></p>}
            </>
          );
        }}
      </Shown>
    </div>
  );
}

function Compare({ runs: [a, b] }: { runs: FoundRun[] }) {
  if (!a?.number || !b?.number) return null;
  const sides = new URLSearchParams({ with: b.thread_id, run: `${a.number}`, with_run: `${b.number}` });
  return <a class="button" href={`${link("compare", a.thread_id)}?${sides}`}>Compare</a>;
}

/** Columns by what they show of a run. */
const CELLS: { [column in Column]: (run: FoundRun) => ComponentChildren } = {
  Agents: (run) => run.agents.map((name) => readable(agentName(name))).join(", ") || "–",
  Started: (run) => <Time of={run.created_at} />,
  Duration: (run) => (run.duration_ms === null ? "–" : duration(run.duration_ms)),
  Tokens: (run) => (run.tokens === null ? "–" : count(run.tokens)),
  Cost: (run) => (run.cost_usd ? dollars(run.cost_usd * 1e9) : "–"),
  User: (run) => run.user ?? "–",
};

const isNumber = (column: Column) => column === "Duration" || column === "Tokens" || column === "Cost";

interface TableProps {
  runs: FoundRun[];
  hidden: Column[];
  chosen: Set<string>;
  setChosen: (ids: Set<string>) => void;
}

function Table({ runs, hidden, chosen, setChosen }: TableProps) {
  function choose(id: string, isChosen: boolean) {
    const next = new Set(chosen);
    if (isChosen) next.add(id);
    else next.delete(id);
    setChosen(next);
  }
  const shown = OPTIONAL.filter((column) => !hidden.includes(column));
  const heads = Object.fromEntries(shown.map((column) => [column, isNumber(column) ? "number" : ""] as const));
  return (
    <ListTable label="Runs" heads={{ Select: "hidden", Status: "", Question: "", ...heads, Open: "" }} class="runs-table">
      {runs.map((run) => (
        <tr key={run.run_id}>
          <td><label class="pick"><input type="checkbox" aria-label={`Select run ${run.number ?? ""} of ${titleOf(run)}`} checked={chosen.has(run.run_id)} onChange={(event) => choose(run.run_id, event.currentTarget.checked)} /></label></td>
          <td class="num" title={run.error?.message}><Status of={run.status} words={STATUS[run.status] ?? run.status} /> <span class="hint small">{STATUS[run.status] ?? run.status}</span></td>
          <td class="main"><a href={link("chat", run.thread_id)}>{titleOf(run)}</a></td>
          {shown.map((column) => <td key={column} class={isNumber(column) ? "number num" : ""}>{CELLS[column](run)}</td>)}
          <td>{run.number !== null && <a href={`${link("trace", run.thread_id)}?run=${run.number}`}>Trace</a>}</td>
        </tr>
      ))}
    </ListTable>
  );
}
