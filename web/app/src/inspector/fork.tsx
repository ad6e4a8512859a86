/** Begins a branch at a step, with the state as it was or edited. */

import { useState } from "preact/hooks";
import { runs, threads } from "../api/threads.ts";
import type { Json, ThreadState } from "../api/types.ts";
import { Dialog } from "../parts/dialog.tsx";
import { attempt } from "../parts/notice.tsx";
import { go } from "../router.ts";
import { parseEdited } from "./difference.ts";

interface Props {
  thread: string;
  state: ThreadState;
  onClose: () => void;
}

export function ForkDialog({ thread, state, onClose }: Props) {
  const fields = Object.keys(state.values);
  const [field, setField] = useState("");
  const [text, setText] = useState("");
  const [problem, setProblem] = useState("");

  function choose(name: string) {
    setField(name);
    setProblem("");
    setText(name ? JSON.stringify(state.values[name], null, 2) : "");
  }

  async function fork() {
    let values: Json = {};
    if (field) {
      const edited = parseEdited(text);
      if ("problem" in edited) return setProblem(edited.problem);
      values = { [field]: edited.value };
    }
    const done = await attempt(async () => {
      const branch = await threads.update(thread, values, state.checkpoint);
      await runs.start(thread, { input: null, checkpoint_id: branch.checkpoint.checkpoint_id });
    }, "The branch was begun.");
    if (done) {
      onClose();
      go("chat", thread);
    }
  }

  return (
    <Dialog title={`Branch from step ${state.metadata?.step ?? ""}`} onClose={onClose} wide>
      <p>The thread continues from this step. What came after stays readable as the other branch.</p>
      <label>
        Edit a field
        <select value={field} onChange={(event) => choose(event.currentTarget.value)}>
          <option value="">nothing</option>
          {fields.map((name) => <option key={name}>{name}</option>)}
        </select>
      </label>
      {field && <textarea class="code" rows={14} aria-label={`New value of ${field}`} value={text} onInput={(event) => setText(event.currentTarget.value)} />}
      {problem && <p class="error-text" role="alert">{problem}</p>}
      <p class="buttons"><button type="button" class="primary" onClick={() => void fork()}>Branch</button></p>
    </Dialog>
  );
}
