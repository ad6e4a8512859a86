/** A server beside its pin: what changed since it was approved, and the approval of what was read. */

import { useState } from "preact/hooks";
import { json } from "../api/http.ts";
import { complain, say } from "../parts/notice.tsx";
import { readable } from "../parts/text.ts";

interface Reviewed {
  changes: string[];
  text: string;
  /** Why there is nothing to approve. */
  nothing: string | null;
}

export function Pin({ server, onApproved }: { server: string; onApproved: () => void }) {
  const [reviewed, setReviewed] = useState<Reviewed | null>(null);
  const [busy, setBusy] = useState(false);
  const at = `v1/servers/${encodeURIComponent(server)}`;
  async function during(work: () => Promise<void>) {
    setBusy(true);
    try {
      await work();
    } catch (error) {
      complain(error);
    }
    setBusy(false);
  }
  const read = () => during(async () => setReviewed(await json<Reviewed>(`${at}/changes`)));
  const approve = (text: string) => during(async () => {
    await json(`${at}/approve`, { text });
    say(`${server} is pinned as shown.`);
    setReviewed(null);
    onApproved();
  });
  return (
    <div class="pin">
      <p class="buttons"><button type="button" disabled={busy} onClick={() => void read()}>{busy ? "Reading definitions…" : "Review changes"}</button> <span class="hint small">Compares what this server offers now with what was approved.</span></p>
      {reviewed && (reviewed.nothing ? <p role="status">Nothing to approve: {readable(reviewed.nothing)}.</p> : (
        <section aria-label={`Changes of ${server}`}>
          <ul>{reviewed.changes.map((change) => <li key={change}>{readable(change)}</li>)}</ul>
          <pre tabIndex={0}>{readable(reviewed.text)}</pre>
          <p class="buttons"><button type="button" class="primary" disabled={busy} onClick={() => void approve(reviewed.text)}>Approve these changes</button></p>
        </section>
      ))}
    </div>
  );
}
