/** Copies a text, and says for a moment that it did. */

import { useState } from "preact/hooks";
import { Icon } from "./icon.tsx";
import { attempt } from "./notice.tsx";

/** Milliseconds that the tick is shown. */
const SHOWN = 1_500;

/** A command as a button that copies it. */
export function CopyCommand({ command }: { command: string }) {
  const [done, setDone] = useState(false);
  const copy = () => attempt(() => navigator.clipboard.writeText(command)).then(setDone);
  return <button type="button" class="primary" onClick={() => void copy()}><Icon name={done ? "check" : "copy"} /> {done ? "Copied" : "Copy"} {command}</button>;
}

export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const [done, setDone] = useState(false);
  async function copy() {
    if (!(await attempt(() => navigator.clipboard.writeText(text)))) return;
    setDone(true);
    setTimeout(() => setDone(false), SHOWN);
  }
  return <button type="button" class="square" aria-label={done ? "Copied" : label} title={label} onClick={() => void copy()}><Icon name={done ? "check" : "copy"} /></button>;
}
