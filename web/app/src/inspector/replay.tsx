/** A recorded thread run again, offline: whether it goes the same way, and where it first does not. */

import { json } from "../api/http.ts";
import type { Json } from "../api/types.ts";
import { useLoad } from "../parts/load.ts";
import { Shown } from "../parts/states.tsx";
import { agentName, readable } from "../parts/text.ts";
import { plural } from "../parts/time.tsx";
import { link } from "../router.ts";
import { Changes } from "./changes.tsx";
import type { Change } from "./difference.ts";
import { ThreadHead } from "../chat/thread-head.tsx";
import { Status } from "../parts/status.tsx";

interface Report {
  from: number;
  left_out: "pruned" | "foreign" | "other_run" | null;
  replayed: number;
  taken: number;
  effects: number;
  divergence: { step: number; node: string; reason: string; about: "request" | "update" | "next"; expected: Json; actual: Json; changes: Change[] } | null;
}

const LEFT_OUT = {
  pruned: "were dropped",
  foreign: "came from a thread whose recorded calls are not here",
  other_run: "belong to earlier runs",
};

const ABOUT = { request: "Request", update: "Update", next: "Next nodes" };

export function ReplayView({ thread }: { thread: string }) {
  const report = useLoad(() => json<Report>(`v1/threads/${encodeURIComponent(thread)}/replay`), [thread]);
  return (
    <div class="inspector">
      <ThreadHead thread={thread} here="Replay" />
      <div class="inspector-body"><div class="view">
      <p class="hint">Replays every step with the current program, settings and prompts over the recorded answers. It makes no calls and stores no data.</p>
      <Shown of={report} what="the replay">
        {(found) => (
          <>
            {found.left_out && <p class="hint">Begins at step {found.from}: the steps before it {LEFT_OUT[found.left_out]}.</p>}
            {found.divergence ? <Diverged found={found} thread={thread} /> : (
              <p role="status"><Status of="done" words="identical" /> {plural(found.replayed, "step")} replayed from {plural(found.effects, "recorded effect")}: each committed the same bytes.</p>
            )}
            {found.taken > 0 && <p class="hint">{plural(found.taken, "step")} (inputs, edits) taken as stored.</p>}
          </>
        )}
      </Shown>
      </div></div>
    </div>
  );
}

function Diverged({ found, thread }: { found: Report; thread: string }) {
  const { divergence } = found;
  if (!divergence) return null;
  return (
    <section aria-label="First divergence">
      <p><Status of="failed" words="different" /> {plural(found.replayed, "step")} identical, then <a href={`${link("inspect", thread)}?step=${divergence.step}`}>step {divergence.step}</a> differs.</p>
      <h2>{agentName(divergence.node) || "The step"}: {readable(divergence.reason)}</h2>
      <p class="hint">{ABOUT[divergence.about]}: as it is recorded, and as it would be now.</p>
      <Changes changes={divergence.changes} />
    </section>
  );
}
