/** Everything that waits for a person, over all threads. */

import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { approvals, type Reply, type Waiting } from "../api/approvals.ts";
import { threadsChanged } from "../chat/changed.ts";
import { useLoad } from "../parts/load.ts";
import { attempt, complain } from "../parts/notice.tsx";
import { Empty, Shown } from "../parts/states.tsx";
import { agentName, clip, readable } from "../parts/text.ts";
import { Time, plural } from "../parts/time.tsx";
import { link } from "../router.ts";
import { AskCard } from "./ask-card.tsx";

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
  const list = useLoad(read, [], { every: 5_000 });
  async function answer(one: Waiting, reply: Reply) {
    await attempt(() => approvals.answer(one.id, reply), "Sent.");
    threadsChanged.value += 1;
    list.reload();
  }
  async function decide(alike: Waiting[], decision: "approve" | "deny") {
    for (const one of alike) {
      try {
        await approvals.answer(one.id, { decision });
      } catch (error) {
        complain(error);
      }
    }
    threadsChanged.value += 1;
    list.reload();
  }
  return (
    <div class="inbox">
      <header class="view-head"><h1>Inbox</h1></header>
      <Shown of={list} what="questions">
        {(all) => {
          if (all.length === 0) return <Empty title="Nothing to decide"><p>Calls that need approval and agents’ questions appear here.</p></Empty>;
          const calls = all.filter((one) => one.kind === "approval");
          return (
            <>
              {calls.length > 1 && (
                <p class="buttons">
                  <button type="button" onClick={() => confirm(`Approve all ${calls.length} calls as shown?`) && void decide(calls, "approve")}>Approve all {calls.length}</button>
                  <button type="button" class="danger" onClick={() => confirm(`Deny all ${calls.length} calls?`) && void decide(calls, "deny")}>Deny all</button>
                </p>
              )}
              <p class="hint">{plural(all.length, "question")} {all.length === 1 ? "waits" : "wait"}.</p>
              {all.map((one) => (
                <article key={one.id}>
                  <h2><a href={link("chat", one.thread_id)}>{readable(clip(one.title ?? one.question ?? `Thread ${one.thread_id.slice(0, 8)}`, 100))}</a> <Time of={one.waits_since} /></h2>
                  <AskCard kind={one.kind} payload={one.payload} agent={one.agent} onAnswer={(reply) => answer(one, reply)} />
                </article>
              ))}
            </>
          );
        }}
      </Shown>
      <Decisions />
    </div>
  );
}

/** What was decided, and by whom; read when it is opened. */
function Decisions() {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Decisions</summary>
      {open && <DecisionsRead />}
    </details>
  );
}

function DecisionsRead() {
  const list = useLoad(approvals.history, []);
  return (
    <Shown of={list} what="decisions">
      {(all) => all.length === 0 ? <Empty title="No requests yet" /> : (
        <div class="scroll" tabIndex={0} role="region" aria-label="Decisions">
          <table>
            <thead><tr><th>Call</th><th>Agent</th><th>Outcome</th><th>By</th><th>When</th></tr></thead>
            <tbody>
              {all.map((one) => (
                <tr key={one.id}>
                  <th scope="row"><a href={link("chat", one.thread)}>{readable(one.tool)}</a></th>
                  <td>{agentName(one.agent)}</td>
                  <td>{one.status.replaceAll("_", " ")}</td>
                  <td>{one.decided_by ? readable(one.decided_by) : "—"}</td>
                  <td><Time of={one.decided_at ?? one.asked_at} /></td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Shown>
  );
}
