/** Begins a branch at a step, with the state as it was or edited. */

import { useState } from "preact/hooks";
import { isOwn } from "../api/graphs.ts";
import { runs, threads } from "../api/threads.ts";
import type { Json, ThreadState } from "../api/types.ts";
import { threadsChanged } from "../chat/changed.ts";
import { Dialog } from "../parts/dialog.tsx";
import { parseEdited } from "../parts/edited.ts";
import { attempt } from "../parts/notice.tsx";
import { go } from "../router.ts";
import { Changes } from "./changes.tsx";
import { difference } from "./difference.ts";

/** Fields to which a written value is added, in place of replacing what is there. */
const ADDED: { [field: string]: string } = {
  messages: "[]",
  tasks: "[]",
  results: "[]",
  citations: "[]",
  global_state: "{}",
  spent: '{ "input_tokens": 0, "output_tokens": 0 }',
};

/** Nodes that need nothing but the state. */
const NODES = new Set(["preprocess", "supervisor", "qa"]);

interface Props {
  thread: string;
  state: ThreadState;
  onClose: () => void;
}

export function ForkDialog({ thread, state, onClose }: Props) {
  const fields = Object.keys(state.values);
  const graph = state.metadata?.graph_id;
  // Which fields of another graph are added to, its reducers know.
  const added: typeof ADDED = isOwn(graph) ? {} : ADDED;
  const of = isOwn(graph) && { assistant_id: graph };
  // An agent's task is not in the state, so the supervisor hands tasks out again after an edit.
  const next = !of && state.next.some((node) => !NODES.has(node)) ? ["supervisor"] : state.next;
  const [field, setField] = useState("");
  const [text, setText] = useState("");
  const [problem, setProblem] = useState("");

  /** Returns what the text of a field begins with. */
  const textOf = (name: string) => (name ? (added[name] ?? JSON.stringify(state.values[name], null, 2)) : "");
  function choose(name: string) {
    setField(name);
    setProblem("");
    setText(textOf(name));
  }

  async function fork() {
    let values: Json | null = null;
    if (field) {
      const edited = parseEdited(text);
      if ("problem" in edited) return setProblem(edited.problem);
      values = { [field]: edited.value };
    }
    const done = await attempt(async () => {
      const checkpoint_id = state.checkpoint?.checkpoint_id;
      if (!values) await runs.start(thread, { ...of, input: null, checkpoint_id });
      else if (of) {
        await threads.update(thread, values, state.checkpoint);
        if (next.length) await runs.start(thread, { ...of, input: null });
      } else if (next.length) await runs.start(thread, { command: { update: values, goto: next }, checkpoint_id });
      else await threads.update(thread, values, state.checkpoint);
      threadsChanged.value += 1;
    }, "Branch started");
    if (done) {
      onClose();
      go("chat", thread);
    }
  }

  return (
    <Dialog title={`Run from step ${state.metadata?.step ?? ""}`} onClose={onClose} unsaved={field !== "" && text !== textOf(field)} wide>
      <p>The thread continues from this step. The later steps remain readable as another branch.</p>
      <label>
        Edit a field
        <select value={field} onChange={(event) => choose(event.currentTarget.value)}>
          <option value="">nothing</option>
          {fields.map((name) => <option key={name}>{name}</option>)}
        </select>
      </label>
      {field && field in added && <p class="hint">Your text is appended to the current value.</p>}
      {field && of && <p class="hint">The field's reducer merges your value: a list may be added to.</p>}
      {field && <textarea class="code" rows={14} aria-label={`New value of ${field}`} value={text} onInput={(event) => setText(event.currentTarget.value)} />}
      {field && <p class="hint">{next.length ? `Continues with: ${next.join(", ")}.` : "The thread ended here. The edit is saved, and no node runs."}</p>}
      {field && !of && !(field in added) && <Preview before={state.values[field]} text={text} />}
      {problem && <p class="error-text" role="alert">{problem}</p>}
      <p class="buttons"><button type="button" class="primary" onClick={() => void fork()}>Start branch</button></p>
    </Dialog>
  );
}

/** What an edit changes; nothing while it is no JSON. */
function Preview({ before, text }: { before: unknown; text: string }) {
  const edited = parseEdited(text);
  if ("problem" in edited) return null;
  const changes = difference(before, edited.value);
  return changes.length > 0 ? <Changes changes={changes} /> : <p class="hint">No changes yet.</p>;
}
