/** Starts a run of a graph: a form made from its input's schema, or one field for a message where the graph is a conversation. */

import { useMemo, useState } from "preact/hooks";
import { fieldsOf } from "../parts/schema.ts";
import type { Json } from "../api/types.ts";
import type { Sending } from "../chat/conversation.ts";
import { keep, kept, newId } from "../chat/draft.ts";
import { attempt } from "../parts/notice.tsx";
import { SchemaForm } from "../people/schema-form.tsx";

interface Props {
  schema: Json;
  /** Returns once the server has accepted the input. */
  onStart: (input: Json, sending: Sending) => Promise<unknown>;
  action?: string;
  /** Where what was typed is kept over a reload. */
  place: string;
}

/** Tells whether a graph is a conversation: it takes messages. */
export const takesMessages = (schema: Json) => fieldsOf(fieldsOf(fieldsOf(schema).properties).messages).type === "array";

const MESSAGE = { type: "string", title: "Your message", format: "multiline" };

export function StartForm({ schema, onStart, action = "Start", place }: Props) {
  const [isSending, setSending] = useState(false);
  // A form whose input was accepted is empty again.
  const [sent, setSent] = useState(0);
  const isChat = takesMessages(schema);
  // A conversation is asked for its message; whatever else it keeps, it keeps itself.
  const shown = useMemo((): Json => (isChat ? { type: "object", required: ["messages"], properties: { messages: MESSAGE } } : schema), [schema]);
  async function start(content: Json) {
    setSending(true);
    const input = isChat ? { messages: [{ role: "user", content: fieldsOf(content).messages ?? "" }] } : content;
    // The same input sent again is the same request, which the server may have accepted.
    const request = `${place}-request`;
    const before = kept<{ id: string; input: string }>(request);
    const isRetry = before?.input === JSON.stringify(input);
    const id = isRetry ? before.id : newId();
    keep(request, { id, input: JSON.stringify(input) });
    if (await attempt(() => onStart(input, { id, isRetry }))) {
      keep(request, undefined);
      keep(place, undefined);
      setSent(sent + 1);
    }
    setSending(false);
  }
  /** Enter sends a message, as everywhere. */
  function key(event: KeyboardEvent) {
    if (!isChat || event.key !== "Enter" || event.shiftKey || event.isComposing || !(event.target instanceof HTMLTextAreaElement)) return;
    event.preventDefault();
    if (!isSending) event.target.form?.requestSubmit();
  }
  return <div onKeyDown={key}><SchemaForm key={sent} schema={shown} action={isSending ? "Starting…" : action} disabled={isSending} place={place} onSubmit={start} /></div>;
}

/** Returns what a thread that begins with an input is called. */
export function titleOf(graph: string, input: Json): string {
  const message = Array.isArray(fieldsOf(input).messages) ? (fieldsOf(input).messages as Json[])[0] : undefined;
  const first = message ? fieldsOf(message).content : Object.values(fieldsOf(input)).find((value) => typeof value === "string" && value.trim());
  return first ? String(first).slice(0, 80) : graph;
}
