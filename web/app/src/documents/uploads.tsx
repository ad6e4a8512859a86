/** Files that are sent to become documents, each with how far it is and what is wrong with it. */

import { useRef, useState } from "preact/hooks";
import { upload, type Added } from "../api/documents.ts";
import { readable } from "../parts/text.ts";

export interface Sending {
  name: string;
  /** Between 0 and 1; 1 means that the server reads it. */
  share: number;
  added?: Added;
  problem?: string;
}

/** Sends files one after another, so that each is whole before the next begins. */
export function useUploads(arrived: (added: Added) => void) {
  const [all, setAll] = useState<Sending[]>([]);
  const change = (name: string, with_: Partial<Sending>) =>
    setAll((before) => before.map((one) => (one.name === name ? { ...one, ...with_ } : one)));
  async function send(files: Iterable<File>) {
    const wanted = [...files];
    const names = new Set(wanted.map((file) => file.name));
    setAll((before) => [...before.filter((one) => !names.has(one.name)), ...wanted.map((file) => ({ name: file.name, share: 0 }))]);
    for (const file of wanted) {
      try {
        const added = await upload(file, (share) => change(file.name, { share }));
        change(file.name, { share: 1, added });
        arrived(added);
      } catch (error) {
        change(file.name, { problem: (error as Error).message });
      }
    }
  }
  const forget = (name: string) => setAll((before) => before.filter((one) => one.name !== name));
  return { all, send, forget };
}

/** How each file stands. */
export function Sendings({ all, forget }: { all: Sending[]; forget: (name: string) => void }) {
  if (all.length === 0) return null;
  return (
    <ul class="sendings" aria-label="Files" aria-live="polite">
      {all.map((one) => (
        <li key={one.name} class={one.problem ? "bad" : ""}>
          <strong>{readable(one.name)}</strong>
          {one.problem ? <span class="error-text">{readable(one.problem)}</span> : one.added ? <span class="hint">{standing(one.added)}</span> : (
            <>
              <progress max={1} {...(one.share < 1 && { value: one.share })} aria-label={`Sending ${one.name}`} />
              <span class="hint">{one.share < 1 ? `${Math.round(one.share * 100)} %` : "reading…"}</span>
            </>
          )}
          {(one.problem || one.added) && <button type="button" class="plain" aria-label={`Dismiss ${one.name}`} onClick={() => forget(one.name)}>✕</button>}
        </li>
      ))}
    </ul>
  );
}

function standing(added: Added): string {
  const parts = [added.unchanged ? "already stored" : "added"];
  if (added.by_words_only) parts.push(`keyword search only: ${added.by_words_only}`);
  return readable([...parts, ...(added.document.warnings ?? [])].join("; "));
}

/** Chooses files, as a button. */
export function ChooseFiles({ onFiles }: { onFiles: (files: Iterable<File>) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button type="button" class="primary" onClick={() => input.current?.click()}>Upload</button>
      <input ref={input} type="file" multiple hidden aria-label="Files to upload" onChange={(event) => {
        if (event.currentTarget.files?.length) onFiles([...event.currentTarget.files]);
        event.currentTarget.value = "";
      }} />
    </>
  );
}

/** A place where files are dropped or chosen. */
export function DropZone({ onFiles }: { onFiles: (files: Iterable<File>) => void }) {
  const [over, setOver] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  return (
    <div
      class={over ? "drop over" : "drop"}
      onDragOver={(event) => (event.preventDefault(), setOver(true))}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        if (event.dataTransfer?.files.length) onFiles(event.dataTransfer.files);
      }}
    >
      <p>Drop files here, or <button type="button" class="link" onClick={() => input.current?.click()}>choose files</button></p>
      <p class="hint small">PDF, Word, PowerPoint, Excel, HTML, CSV, Markdown and text, up to 64 MB each. A file with the same name replaces the document.</p>
      <input ref={input} type="file" multiple hidden aria-label="Files to add" onChange={(event) => {
        if (event.currentTarget.files?.length) onFiles([...event.currentTarget.files]);
        event.currentTarget.value = "";
      }} />
    </div>
  );
}
