/** Chooses a run of a thread by when it was and how it ended. */

import { runs } from "../api/threads.ts";
import { useLoad } from "../parts/load.ts";
import { moment } from "../parts/time.tsx";

/** Runs that are offered. */
const MOST = 100;

interface Props {
  thread: string;
  name: string;
  /** What no choice means. */
  all: string;
  value: string;
  onChange: (number: string) => void;
}

export function RunPicker({ thread, name, all, value, onChange }: Props) {
  const list = useLoad(() => runs.list(thread, MOST), [thread]);
  const found = list.data ?? [];
  return (
    <label class="inline">
      {name}
      <select aria-label={name} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        <option value="">{all}</option>
        {found.map((run, index) => <option key={run.run_id} value={String(found.length - index)}>{`Run ${found.length - index}, ${moment(run.created_at)}, ${run.status}`}</option>)}
        {value && !found[found.length - Number(value)] && <option value={value}>Run {value}</option>}
      </select>
    </label>
  );
}
