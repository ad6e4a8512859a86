/** Everything that waits for a person, over all threads. */

import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { HISTORY, approvals, type Reply, type Waiting } from "../api/approvals.ts";
import { threadsChanged } from "../chat/changed.ts";
import { calledTool, deedOf } from "../data/tool-titles.ts";
import { useLoad } from "../parts/load.ts";
import { confirmed } from "../parts/confirm.tsx";
import { attempt, complain, dialogs } from "../parts/notice.tsx";
import { Newest } from "../parts/rest.tsx";
import { Empty, Shown } from "../parts/states.tsx";
import { agentName, clip, readable } from "../parts/text.ts";
import { Time, plural } from "../parts/time.tsx";
import { singleKeys } from "../keys.tsx";
import { link, putQuery, route } from "../router.ts";
import { AskCard } from "./ask-card.tsx";
import { asked } from "./decide.ts";

/** How many questions wait; shown as a badge. */
export const waiting = signal(0);

async function read(): Promise<Waiting[]> {
  const all = await approvals.list();
  waiting.value = all.length;
  return all;
}

/** Reads the number of waiting questions. */
export async function refreshWaiting() {
  try {
    await read();
  } catch {
    // The views say what is wrong with the server; a badge does not.
  }
}

export function InboxView() {
  const tab = route.value.query.get("tab") === "decided" ? "Decided" : "Open";
  const list = useLoad(read, [], { every: 5_000 });
  return (
    <div class="view inbox">
      <header class="view-head">
        <h1>Inbox</h1>
        <div class="tabs" role="group" aria-label="Shown">
          <button type="button" aria-pressed={tab === "Open"} onClick={() => putQuery({ tab: null })}>Open</button>
          <button type="button" aria-pressed={tab === "Decided"} onClick={() => putQuery({ tab: "decided" })}>Decided</button>
        </div>
      </header>
      {tab === "Decided" ? <Decisions /> : (
        <Shown of={list} what="requests">
          {(all) => (all.length === 0 ? <Empty title="All clear"><p>Calls that need approval and agents’ questions appear here.</p><p class="buttons"><a class="button primary" href={link("chat")}>Ask</a></p></Empty> : <Open all={all} reload={list.reload} />)}
        </Shown>
      )}
    </div>
  );
}

/** What waits: the list, and all of the chosen one. */
function Open({ all, reload }: { all: Waiting[]; reload: () => void }) {
  const [first] = useState(all[0]?.id ?? "");
  const opened = () => route.value.query.get("request") ?? first;
  const setCurrent = (id: string) => putQuery({ request: id });
  const current = opened();
  const [chosen, setChosen] = useState<Set<string>>(new Set());
  const at = all.findIndex((one) => one.id === current);
  const one = all[at];
  const selected = all.filter((each) => chosen.has(each.id));

  /** Decides, and opens the next. */
  async function answer(each: Waiting, reply: Reply) {
    const isSent = await attempt(() => approvals.answer(each.id, reply), "Sent.");
    const next = all[at + 1] ?? all[at - 1];
    // Another one may be open meanwhile.
    if (isSent && next && opened() === each.id) setCurrent(next.id);
    threadsChanged.value += 1;
    reload();
    return isSent;
  }
  async function decide(decision: "approve" | "deny") {
    const verb = decision === "approve" ? "Approve" : "Deny";
    if (!(await confirmed(`${verb} ${plural(selected.length, "call")} as shown?`, verb))) return;
    for (const each of selected) await approvals.answer(each.id, { decision }).catch(complain);
    setChosen(new Set());
    threadsChanged.value += 1;
    reload();
  }
  function select(each: Waiting, isChosen: boolean) {
    const next = new Set(chosen);
    if (isChosen) next.add(each.id);
    else next.delete(each.id);
    setChosen(next);
  }
  /** Selects all calls from the open one to another, which opens. */
  function selectTo(to: number) {
    const between = all.slice(Math.min(at, to), Math.max(at, to) + 1).filter(({ kind }) => kind === "approval");
    setChosen(new Set([...chosen, ...between.map(({ id }) => id)]));
    setCurrent(all[to]?.id ?? current);
  }
  useInboxKeys({
    extend: (by) => all[at + by] && selectTo(at + by),
    move: (by) => {
      const next = all[at + by];
      if (next) setCurrent(next.id);
    },
    // As its button does, with edited arguments and the note.
    decide: (decision) => document.querySelector<HTMLButtonElement>(`.inbox article [data-decision=${decision}]`)?.click(),
    select: () => one?.kind === "approval" && select(one, !chosen.has(one.id)),
  });
  const calls = all.filter((each) => each.kind === "approval");
  return (
    <>
      <p class="buttons">
        {calls.length > 1 && <button type="button" onClick={() => setChosen(new Set(selected.length === calls.length ? [] : calls.map((each) => each.id)))}>{selected.length === calls.length ? "Select none" : `Select all ${calls.length}`}</button>}
        {selected.length > 0 && <><button type="button" onClick={() => void decide("approve")}>Approve {selected.length}</button><button type="button" class="danger" onClick={() => void decide("deny")}>Deny {selected.length}</button></>}
        <span class="hint small">{all.length} waiting for you.{singleKeys.value && " Keys: J and K move, with Shift they select, too; X selects, A approves, D denies."}</span>
      </p>
      <div class="inbox-columns">
        <ul class="inbox-list" aria-label="Waiting">
          {all.map((each) => (
            <li key={each.id}>
              {each.kind === "approval" && calls.length > 1 && <label class="pick"><input type="checkbox" aria-label={`Select ${titleOf(each)}`} checked={chosen.has(each.id)} onChange={(event) => select(each, event.currentTarget.checked)} /></label>}
              <button type="button" class="inbox-entry" aria-current={each.id === one?.id ? "true" : undefined} onClick={(event) => (event.shiftKey ? selectTo(all.indexOf(each)) : setCurrent(each.id))}>
                <span class="ellipsis">{subject(each)}</span>
                <span class="small hint ellipsis">{titleOf(each)} · <Time of={each.waits_since} /></span>
              </button>
            </li>
          ))}
        </ul>
        {!one && <p class="hint">Somebody answered this request. Choose another one.</p>}
        {one && (
          <article key={one.id} aria-label="Request">
            <h2><a href={link("chat", one.thread_id)}>{titleOf(one)}</a> <Time of={one.waits_since} /></h2>
            <AskCard place={one.id} kind={one.kind} payload={one.payload} agent={one.agent} onAnswer={(reply) => answer(one, reply)} />
          </article>
        )}
      </div>
    </>
  );
}

const titleOf = (one: Waiting) => readable(clip(one.title || one.question || `Thread ${one.thread_id.slice(0, 8)}`, 100));

const KINDS = { approval: "", question: "Question", form: "Form", visit: "Address to open", unknown: "Unknown outcome", free: "Question" };

/** Says in a line what is asked. */
function subject(one: Waiting): string {
  const asks = asked(one.kind, one.payload, one.agent);
  if (asks.kind === "approval") return readable(`${asks.server || agentName(asks.agent) || "An agent"} wants to ${deedOf(asks.tool)}`);
  const by = readable(agentName(asks.agent)) || "Supervisor";
  return "text" in asks && asks.text ? `${by}: ${readable(clip(asks.text, 80))}` : `${by}: ${KINDS[asks.kind]}`;
}

interface Keys {
  move: (by: number) => void;
  /** Moves, and selects what it comes from and to. */
  extend: (by: number) => unknown;
  decide: (decision: "approve" | "deny") => unknown;
  select: () => unknown;
}

/** J and K move, with Shift they select, A and D decide, X selects; not while something is typed. */
function useInboxKeys(keys: Keys) {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const isTyping = event.target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
      if (isTyping || event.repeat || event.ctrlKey || event.metaKey || event.altKey || dialogs.value > 0 || !singleKeys.value) return;
      const { move, extend, decide, select } = latest.current;
      if (event.key === "j") move(1);
      else if (event.key === "k") move(-1);
      else if (event.key === "J") extend(1);
      else if (event.key === "K") extend(-1);
      else if (event.key === "a") decide("approve");
      else if (event.key === "d") decide("deny");
      else if (event.key === "x") select();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

/** What was decided, and by whom. */
function Decisions() {
  const list = useLoad(() => approvals.history(), []);
  return (
    <Shown of={list} what="decisions">
      {(all) => all.length === 0 ? <Empty title="No decisions yet" /> : (
        <><div class="scroll" tabIndex={0} role="region" aria-label="Decisions">
          <table class="list-table">
            <thead><tr><th>Call</th><th>Agent</th><th>Outcome</th><th>By</th><th>When</th></tr></thead>
            <tbody>
              {all.map((one) => (
                <tr key={one.id}>
                  <th scope="row"><a href={link("chat", one.thread)}><span title={one.tool}>{readable(calledTool(one.tool))}</span></a></th>
                  <td>{agentName(one.agent)}</td>
                  <td>{one.status.replaceAll("_", " ")}</td>
                  <td>{one.decided_by ? readable(one.decided_by) : "–"}</td>
                  <td><Time of={one.decided_at ?? one.asked_at} /></td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        <Newest shown={all.length} most={HISTORY} /></>
      )}
    </Shown>
  );
}
