/** Chooses a run of a thread by when it was and how it ended. */

import { ofThread } from "../api/runs.ts";
import { useLoad } from "../parts/load.ts";
import { moment } from "../parts/time.tsx";

interface Props {
  thread: string;
  name: string;
  /** What no choice means. */
  all: string;
  value: string;
  onChange: (number: string) => void;
}

export function RunPicker({ thread, name, all, value, onChange }: Props) {
  const list = useLoad(() => ofThread(thread), [thread]);
  // A run that has not begun has no number.
  const begun = (list.data ?? []).filter(({ number }) => number !== null);
  return (
    <label class="inline">
      {name}
      <select aria-label={name} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        <option value="">{all}</option>
        {begun.map((run) => <option key={run.run_id} value={String(run.number)}>{`Run ${run.number}, ${moment(run.created_at)}, ${run.status}`}</option>)}
        {value && !begun.some(({ number }) => String(number) === value) && <option value={value}>Run {value}</option>}
      </select>
    </label>
  );
}
