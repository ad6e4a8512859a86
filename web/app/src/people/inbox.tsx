/** Everything that waits for a person, over all threads. */

import { signal } from "@preact/signals";
import { runs, threads } from "../api/threads.ts";
import type { Interrupt, Json, Thread } from "../api/types.ts";
import { useLoad } from "../parts/load.ts";
import { attempt, complain } from "../parts/notice.tsx";
import { Empty, Shown } from "../parts/states.tsx";
import { legible } from "../parts/text.ts";
import { Time, plural } from "../parts/time.tsx";
import { link } from "../router.ts";
import { threadTitle } from "../chat/thread-list.tsx";
import { AskCard } from "./ask-card.tsx";
import { asked, decideAll } from "./decide.ts";

/** How many threads wait; shown as a badge. */
export const waiting = signal(0);

/** Reads the number of waiting threads, and notices those that began to wait. */
export async function refreshWaiting() {
  try {
    const list = await threads.search({ status: "interrupted" });
    waiting.value = list.length;
  } catch {
    // The views say what is wrong with the server; a badge does not.
  }
}

interface Waiting {
  thread: Thread;
  interrupt: Interrupt;
}

export function InboxView() {
  const list = useLoad(
    async () => {
      const found = await threads.search({ status: "interrupted" });
      waiting.value = found.length;
      return found.flatMap((thread) => Object.values(thread.interrupts ?? {}).flat().map((interrupt): Waiting => ({ thread, interrupt })));
    },
    [],
    5_000,
  );
  async function answer({ thread, interrupt }: Waiting, value: Json) {
    await attempt(() => runs.start(thread.thread_id, { command: { resume: { [interrupt.id]: value } } }), "Sent.");
    list.reload();
  }
  async function decide(alike: Waiting[], type: "approve" | "reject") {
    for (const one of alike) {
      const approval = asked(one.interrupt);
      if (approval.kind !== "approval") continue;
      try {
        await runs.start(one.thread.thread_id, { command: { resume: { [one.interrupt.id]: decideAll(approval, type) } } });
      } catch (error) {
        complain(error);
      }
    }
    list.reload();
  }
  return (
    <div class="inbox">
      <header class="view-head"><h1>Inbox</h1></header>
      <Shown of={list} what="questions">
        {(all) => {
          if (all.length === 0) return <Empty title="Nothing waits for you"><p>Calls that need approval and agents’ questions appear here.</p></Empty>;
          const approvals = all.filter((one) => asked(one.interrupt).kind === "approval");
          return (
            <>
              {approvals.length > 1 && (
                <p class="buttons">
                  <button type="button" onClick={() => confirm(`Approve all ${approvals.length} calls as they stand?`) && void decide(approvals, "approve")}>Approve all {approvals.length}</button>
                  <button type="button" class="danger" onClick={() => void decide(approvals, "reject")}>Deny all</button>
                </p>
              )}
              <p class="hint">{plural(all.length, "question")} wait.</p>
              {all.map((one) => (
                <article key={`${one.thread.thread_id} ${one.interrupt.id}`}>
                  <h2><a href={link("chat", one.thread.thread_id)}>{legible(threadTitle(one.thread))}</a> <Time of={one.thread.updated_at} /></h2>
                  <AskCard interrupt={one.interrupt} onAnswer={(value) => answer(one, value)} />
                </article>
              ))}
            </>
          );
        }}
      </Shown>
    </div>
  );
}
