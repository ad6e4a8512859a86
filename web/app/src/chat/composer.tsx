/** Where a question is written, with the request's options. What is typed is kept until the server has accepted it. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ServerError } from "../api/http.ts";
import { Sendings, useUploads } from "../documents/uploads.tsx";
import { Icon } from "../parts/icon.tsx";
import { useClosing } from "../parts/menu.tsx";
import { agentName, readable } from "../parts/text.ts";
import type { Request, Sending } from "./conversation.ts";
import { EMPTY, kept, keepDraft, newId, readDraft, requestOf, type Choice, type Draft } from "./draft.ts";

interface Props {
  /** Whose draft it is: a thread's, or that of a new one. */
  thread?: string | undefined;
  agents: string[];
  busy: boolean;
  /** Returns once the server has accepted the request. */
  onSend: (request: Request, sending: Sending) => Promise<void>;
  onStop?: () => void;
  /** The question of a turn that is edited, and where its draft is kept. */
  edited?: { text: string; place: string };
  /** The open question that a plain text answers. */
  answering?: string | undefined;
  autoFocus?: boolean;
}

/** Pixels to which the field grows. */
const HIGHEST = 240;

/** Tells whether a request is a text and nothing else. */
const isPlain = ({ include_data, question: _, ...more }: Request) => include_data === true && Object.keys(more).length === 0;

export function Composer({ thread, agents, busy, onSend, onStop, edited, answering, autoFocus }: Props) {
  const place = edited?.place ?? thread;
  const [draft, setDraft] = useState<Draft>(() => (edited ? { ...EMPTY, ...(kept<Draft>(edited.place) ?? { text: edited.text }) } : readDraft(thread)));
  const [isSending, setSending] = useState(false);
  const box = useRef<HTMLTextAreaElement>(null);
  const file = useRef<HTMLInputElement>(null);
  const uploads = useUploads((added) => change((before) => ({ attached: [...before.attached.filter((one) => one.id !== added.document.id), { id: added.document.id, title: added.document.title }] })));
  const isUploading = uploads.all.some((one) => !one.added && !one.problem);

  function change(part: Partial<Draft> | ((before: Draft) => Partial<Draft>)) {
    setDraft((before) => {
      // Another question is another request: the server may have accepted the one before.
      const { request: _, answers: __, ...rest } = before;
      const after = { ...rest, ...(typeof part === "function" ? part(before) : part) };
      keepDraft(place, after);
      return after;
    });
  }

  useEffect(() => {
    if (autoFocus) box.current?.focus();
  }, [autoFocus]);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    element.style.height = "auto";
    element.style.height = `${Math.min(element.scrollHeight, HIGHEST)}px`;
  }, [draft.text]);

  async function send() {
    if (!draft.text.trim() || busy || isUploading || isSending) return;
    const id = draft.request ?? newId();
    const isRetry = draft.request !== undefined;
    const { unsent: _, ...rest } = draft;
    const request = requestOf(draft);
    const answers = draft.answers ?? (!isRetry && isPlain(request) ? answering : undefined);
    const sent = { ...rest, request: id, ...(answers && { answers }) };
    setSending(true);
    setDraft(sent);
    // Before it is sent, so that a reload does not ask twice.
    keepDraft(place, sent);
    try {
      await onSend(request, { id, isRetry, answers });
      for (const one of uploads.all) uploads.forget(one.name);
      setDraft(EMPTY);
      keepDraft(place, EMPTY);
    } catch (error) {
      const unsent = (error as Error).message;
      // What the server refused has not arrived.
      const isRefused = error instanceof ServerError && error.status >= 400 && error.status < 500;
      change(isRefused ? { unsent } : { request: id, ...(answers && { answers }), unsent });
    }
    setSending(false);
  }

  function key(event: KeyboardEvent) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    void send();
  }

  return (
    <form
      class="composer"
      onSubmit={(event) => (event.preventDefault(), void send())}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        if (event.dataTransfer?.files.length) void uploads.send(event.dataTransfer.files);
      }}
    >
      {draft.unsent && (
        <p class="unsent" role="alert"><Icon name="alert" /> <span>Not sent. {draft.unsent}</span> <button type="submit" disabled={isSending}>Retry</button></p>
      )}
      <Sendings all={uploads.all} forget={uploads.forget} />
      <Attached draft={draft} hidden={uploads.all.flatMap((one) => (one.added ? [one.added.document.id] : []))} remove={(id) => change((before) => ({ attached: before.attached.filter((one) => one.id !== id) }))} />
      <label class="hidden" for="question">Your question</label>
      <textarea id="question" ref={box} rows={1} value={draft.text} readOnly={isSending} placeholder="Ask a question" onInput={(event) => change({ text: event.currentTarget.value })} onKeyDown={key} />
      <div class="composer-tools">
        <button type="button" class="square" aria-label="Attach" onClick={() => file.current?.click()} title="Attach documents for agents to quote, or drop files here"><Icon name="clip" /></button>
        <input ref={file} type="file" multiple hidden aria-label="Files to attach" onChange={(event) => {
          if (event.currentTarget.files?.length) void uploads.send([...event.currentTarget.files]);
          event.currentTarget.value = "";
        }} />
        <Options draft={draft} agents={agents} change={change} />
        {busy && onStop ? (
          <button type="button" class="danger send" onClick={onStop}><Icon name="stop" /> Stop</button>
        ) : (
          <button type="submit" class="primary send" disabled={!draft.text.trim() || isUploading || isSending}><Icon name="arrow-up" /> {isSending ? "Sending…" : "Ask"}</button>
        )}
      </div>
    </form>
  );
}

/** Documents that a draft was kept with. */
function Attached({ draft, hidden, remove }: { draft: Draft; hidden: string[]; remove: (id: string) => void }) {
  const shown = draft.attached.filter((one) => !hidden.includes(one.id));
  if (shown.length === 0) return null;
  return (
    <ul class="sendings" aria-label="Attached documents">
      {shown.map((one) => <li key={one.id}><Icon name="file" /> {readable(one.title)} <button type="button" class="square" aria-label={`Remove ${one.title}`} onClick={() => remove(one.id)}><Icon name="close" /></button></li>)}
    </ul>
  );
}

interface OptionsProps {
  draft: Draft;
  agents: string[];
  change: (part: Partial<Draft>) => void;
}

function Options({ draft, agents, change }: OptionsProps) {
  const chosen = Object.values(draft.choices).filter((choice) => choice !== "free").length;
  const limits = [draft.turns, !draft.data].filter(Boolean).length;
  return (
    <>
      <Chip title="Agents" count={chosen}>
        {agents.length === 0 && <p class="hint">No agents yet. Declare MCP servers in mcp-servers.toml.</p>}
        {agents.map((agent) => (
          <label key={agent} class="choice">
            {agentName(agent)}
            <select value={draft.choices[agent] ?? "free"} onChange={(event) => change({ choices: { ...draft.choices, [agent]: event.currentTarget.value as Choice } })}>
              <option value="free">Automatic</option>
              <option value="prefer">Preferred</option>
              <option value="disable">Disabled</option>
            </select>
          </label>
        ))}
      </Chip>
      <Chip title="Instructions" count={draft.instructions.trim() || draft.context.trim() ? 1 : 0}>
        <label>
          Instructions
          <textarea rows={3} value={draft.instructions} onInput={(event) => change({ instructions: event.currentTarget.value })} />
        </label>
        <label>
          Context, one <code>key=value</code> a line
          <textarea rows={2} value={draft.context} onInput={(event) => change({ context: event.currentTarget.value })} />
        </label>
      </Chip>
      <Chip title="Limits" count={limits}>
        <label>
          Maximum rounds
          <input type="number" min="1" value={draft.turns} onInput={(event) => change({ turns: event.currentTarget.value })} />
        </label>
        <label class="choice">
          <input type="checkbox" checked={draft.data} onChange={(event) => change({ data: event.currentTarget.checked })} /> Include tables
        </label>
      </Chip>
    </>
  );
}

function Chip({ title, count, children }: { title: string; count: number; children: ComponentChildren }) {
  const box = useClosing();
  return (
    <details class="menu options" ref={box}>
      <summary>{title}{count > 0 && <span class="badge">{count}</span>}</summary>
      <div class="menu-items option-fields">{children}</div>
    </details>
  );
}
