/** Questions of the page itself before something is lost, and for a new name. */

import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { Dialog } from "./dialog.tsx";

interface Asking {
  title: string;
  text?: string;
  action: string;
  isDanger?: boolean;
  /** Label and first value of a field, where a text is asked for. */
  field?: { label: string; value: string };
}

const open = signal<{ asking: Asking; answer: (text: string | null) => void } | null>(null);

function ask(asking: Asking): Promise<string | null> {
  open.value?.answer(null);
  return new Promise((answer) => {
    open.value = { asking, answer };
  });
}

/** Asks whether to do something that cannot be undone. */
export const confirmed = async (title: string, action: string, text?: string) => (await ask({ title, action, isDanger: true, ...(text && { text }) })) !== null;

/** Asks for a text; null where the reader wants to leave it. */
export const askText = (title: string, label: string, value: string) => ask({ title, action: "Save", field: { label, value } });

/** Shows the question that is open. */
export function Asking() {
  const now = open.value;
  return now && <AskingDialog key={now.asking.title} asking={now.asking} answer={(text) => ((open.value = null), now.answer(text))} />;
}

function AskingDialog({ asking, answer }: { asking: Asking; answer: (text: string | null) => void }) {
  const [text, setText] = useState(asking.field?.value ?? "");
  return (
    <Dialog title={asking.title} onClose={() => answer(null)}>
      <form onSubmit={(event) => (event.preventDefault(), answer(text))}>
        {asking.text && <p>{asking.text}</p>}
        {asking.field && <label>{asking.field.label}<input autofocus required value={text} onInput={(event) => setText(event.currentTarget.value)} /></label>}
        <p class="buttons">
          <button type="submit" class={asking.isDanger ? "danger primary" : "primary"}>{asking.action}</button>
          <button type="button" autofocus={!asking.field} onClick={() => answer(null)}>Cancel</button>
        </p>
      </form>
    </Dialog>
  );
}
