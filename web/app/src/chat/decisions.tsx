/** What people decided in the course of a turn: a line each, where the card was. */

import { approvals, type Decided } from "../api/approvals.ts";
import { deedOf } from "../data/tool-titles.ts";
import { useLoad } from "../parts/load.ts";
import { Icon } from "../parts/icon.tsx";
import { readable } from "../parts/text.ts";
import { Time } from "../parts/time.tsx";

const WORDS: { [status: string]: string } = { approved: "Approved", denied: "Denied", timed_out: "Expired and denied", withdrawn: "Withdrawn", expired: "Expired" };

interface Props {
  thread: string;
  /** When the turn began. */
  since: string | undefined;
  /** Changes when something may have been decided. */
  key_: string;
}

export function Decisions({ thread, since, key_ }: Props) {
  const read = useLoad(() => approvals.history(thread), [thread, key_], { keep: true });
  const shown = (read.data ?? []).filter((one) => one.decided_at && since && one.asked_at >= since);
  return <>{shown.toReversed().map((one) => <Line key={one.id} decided={one} />)}</>;
}

function Line({ decided: { tool, status, decided_by: by, decided_at: at } }: { decided: Decided }) {
  return (
    <p class="decided hint small">
      <Icon name={status === "approved" ? "check" : "close"} /> {WORDS[status] ?? readable(status)}: {readable(deedOf(tool))}{by && `, by ${readable(by)}`}, <Time of={at} />
    </p>
  );
}
