/** One question to a person, with everything needed to decide it. */

import { useState } from "preact/hooks";
import type { Interrupt, Json } from "../api/types.ts";
import { JsonView } from "../parts/json-view.tsx";
import { agentName, legible } from "../parts/text.ts";
import { asked, decideAll, edit, type Approval, type Form, type Question, type Unknown } from "./decide.ts";
import { SchemaForm } from "./schema-form.tsx";

interface Props {
  interrupt: Interrupt;
  /** Sends the answer; the card is disabled until it returns. */
  onAnswer: (answer: Json) => Promise<unknown>;
}

export function AskCard({ interrupt, onAnswer }: Props) {
  const [sending, setSending] = useState(false);
  const question = asked(interrupt);
  async function answer(value: Json) {
    setSending(true);
    try {
      await onAnswer(value);
    } finally {
      setSending(false);
    }
  }
  return (
    <section class={`ask ${question.kind}`} aria-label="Waits for you" aria-busy={sending}>
      <fieldset disabled={sending}>
        <legend>
          {question.kind === "approval" ? "Approve?" : question.kind === "unknown" ? "What happened?" : "A question"}
          {question.agent && <span class="hint"> from {agentName(question.agent)}</span>}
        </legend>
        {question.kind === "approval" && <ApprovalBody asks={question} answer={answer} />}
        {question.kind === "question" && <QuestionBody asks={question} answer={answer} />}
        {question.kind === "form" && <FormBody asks={question} answer={answer} />}
        {question.kind === "unknown" && <UnknownBody asks={question} answer={answer} />}
      </fieldset>
    </section>
  );
}

type Body<T> = { asks: T; answer: (value: Json) => Promise<void> };

function ApprovalBody({ asks, answer }: Body<Approval>) {
  const [note, setNote] = useState("");
  const [drafts, setDrafts] = useState<string[] | null>(null);
  const [problem, setProblem] = useState("");
  const message = note.trim() || undefined;
  const editable = asks.actions.every((action) => action.allowed.length === 0 || action.allowed.includes("edit"));
  function approve() {
    if (!drafts) return void answer(decideAll(asks, "approve", message));
    try {
      const args = drafts.map((draft) => JSON.parse(draft) as Json);
      void answer(edit(asks, args, message));
    } catch (error) {
      setProblem(`the arguments are not JSON: ${(error as Error).message}`);
    }
  }
  return (
    <>
      {asks.tainted.length > 0 && <p class="warn">What led to this call came from the open world: {asks.tainted.map(legible).join(", ")}. Read the arguments with that in mind.</p>}
      {asks.actions.map((action, index) => (
        <div key={index} class="action">
          <p><code>{legible(action.name)}</code> {legible(action.description)}</p>
          {drafts ? (
            <textarea aria-label={`Arguments of ${action.name}`} rows={6} value={drafts[index]} onInput={(event) => setDrafts(drafts.map((draft, at) => (at === index ? event.currentTarget.value : draft)))} />
          ) : (
            <JsonView value={action.args} />
          )}
        </div>
      ))}
      {problem && <p class="error-text" role="alert">{problem}</p>}
      <label>
        A word to the agent (optional)
        <input value={note} onInput={(event) => setNote(event.currentTarget.value)} />
      </label>
      {asks.expires && <p class="hint">Can be decided until {new Date(asks.expires).toLocaleTimeString()}.</p>}
      <p class="buttons">
        <button type="button" class="primary" onClick={approve}>{drafts ? "Approve as edited" : "Approve"}</button>
        <button type="button" class="danger" onClick={() => void answer(decideAll(asks, "reject", message))}>Deny</button>
        {editable && (
          <button type="button" onClick={() => setDrafts(drafts ? null : asks.actions.map((action) => JSON.stringify(action.args, null, 2)))}>
            {drafts ? "Leave as it was" : "Edit arguments"}
          </button>
        )}
      </p>
    </>
  );
}

function QuestionBody({ asks, answer }: Body<Question>) {
  const [text, setText] = useState("");
  return (
    <>
      <p>{legible(asks.text)}</p>
      <p class="buttons">{asks.options.map((option) => <button type="button" key={option} onClick={() => void answer(option)}>{legible(option)}</button>)}</p>
      <label>
        Your answer
        <textarea rows={2} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      <p class="buttons"><button type="button" class="primary" disabled={!text.trim()} onClick={() => void answer(text.trim())}>Answer</button></p>
    </>
  );
}

function FormBody({ asks, answer }: Body<Form>) {
  return (
    <>
      <p>{legible(asks.text)}</p>
      <SchemaForm schema={asks.schema} onSubmit={(content) => void answer({ action: "accept", content })} onDecline={() => void answer({ action: "decline" })} />
    </>
  );
}

function UnknownBody({ asks, answer }: Body<Unknown>) {
  const [result, setResult] = useState("");
  return (
    <>
      <p>A call was sent, and nobody knows whether it took effect. Look at the other system, then decide.</p>
      <JsonView value={asks.what} />
      <label>
        What it gave, if it happened (optional)
        <textarea rows={2} value={result} onInput={(event) => setResult(event.currentTarget.value)} />
      </label>
      <p class="buttons">
        <button type="button" class="primary" onClick={() => void answer({ outcome: "done", ...(result.trim() && { result: result.trim() }) })}>It happened</button>
        <button type="button" onClick={() => void answer({ outcome: "retry" })}>Send it again</button>
        <button type="button" class="danger" onClick={() => void answer({ outcome: "skip" })}>Skip it</button>
      </p>
    </>
  );
}
