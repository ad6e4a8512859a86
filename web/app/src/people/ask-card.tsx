/** One question to a person, with everything needed to decide it. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { Reply } from "../api/approvals.ts";
import type { Json } from "../api/types.ts";
import { keep, kept } from "../chat/draft.ts";
import { agents } from "../data/agents.ts";
import { deedOf } from "../data/tool-titles.ts";
import { Changes } from "../inspector/changes.tsx";
import { difference } from "../inspector/difference.ts";
import { isEveryNumberExact, parseEdited } from "../parts/edited.ts";
import { Icon } from "../parts/icon.tsx";
import { useLoad } from "../parts/load.ts";
import { agentName, readable } from "../parts/text.ts";
import { moment, until } from "../parts/time.tsx";
import { Values } from "../parts/values.tsx";
import { EditArguments } from "./edit-arguments.tsx";
import { asked, type Approval, type Form, type Free, type Question, type Unknown, type Visit } from "./decide.ts";
import { SchemaForm } from "./schema-form.tsx";

interface Props {
  /** Where what is typed is kept until it is sent. */
  place: string;
  kind: string;
  payload: Json;
  agent?: string | null;
  /** Sends the answer and tells whether that went well; the card is disabled until it returns. */
  onAnswer: (reply: Reply) => Promise<boolean>;
}

const TITLES = { approval: "Approve this call?", question: "A question", form: "A question", visit: "Open an address?", unknown: "What was the outcome?", free: "A question" };

export function AskCard({ place, kind, payload, agent, onAnswer }: Props) {
  const [sending, setSending] = useState(false);
  const question = asked(kind, payload, agent);
  async function answer(reply: Reply) {
    setSending(true);
    if (await onAnswer(reply)) ALL.forEach((what) => keep(`${place} ${what}`, undefined));
    setSending(false);
  }
  return (
    <section class={`ask ${question.kind}`} aria-label="Waiting for you" aria-busy={sending}>
      <fieldset disabled={sending}>
        <legend class="hidden">{TITLES[question.kind]}</legend>
        <p class="ask-title">
          {question.kind === "approval" ? <ApprovalTitle asks={question} /> : <>{TITLES[question.kind]} {question.agent && <span class="hint">from {readable(agentName(question.agent))}</span>}</>}
        </p>
        {question.kind === "approval" && <ApprovalBody asks={question} place={place} answer={answer} />}
        {question.kind === "question" && <QuestionBody asks={question} place={place} answer={answer} />}
        {question.kind === "form" && <FormBody asks={question} place={place} answer={answer} />}
        {question.kind === "visit" && <VisitBody asks={question} answer={answer} />}
        {question.kind === "free" && <FreeBody asks={question} place={place} answer={answer} />}
        {question.kind === "unknown" && <UnknownBody asks={question} place={place} answer={answer} />}
      </fieldset>
    </section>
  );
}

/** Who wants to do what, and how careful a reader should be. */
function ApprovalTitle({ asks }: { asks: Approval }) {
  const tool = useTool(asks.tool);
  const canDestroy = /destroy|destructive|delete|overwrite/i.test(asks.reasons.join(" "));
  return (
    <>
      <span>{readable(asks.server || agentName(asks.agent) || "An agent")} wants to {readable(deedOf(asks.tool))}</span>
      {asks.tainted.length > 0 && <span class="chip bad">Untrusted content</span>}
      {canDestroy ? <span class="chip bad">Can delete or overwrite</span> : tool?.read_only ? <span class="chip">Only reads</span> : <span class="chip warn">Changes something</span>}
    </>
  );
}

/** Returns what is known of a tool. */
const useTool = (name: string) => useLoad(() => agents.tool(name), [name]).data;

type Body<T> = { asks: T; place: string; answer: (reply: Reply) => Promise<void> };

/** What can be typed before an answer is sent. */
const ALL = ["note", "arguments", "answer"] as const;

/** What is typed, which stays until it is sent. */
function useTyped<T>(place: string, what: (typeof ALL)[number], first: T): [T, (now: T) => void] {
  const [typed, setTyped] = useState<T>(() => kept<T>(`${place} ${what}`) ?? first);
  return [typed, (now) => (keep(`${place} ${what}`, now || undefined), setTyped(now))];
}

function ApprovalBody({ asks, place, answer }: Body<Approval>) {
  const [note, setNote] = useTyped(place, "note", "");
  /** The arguments as they are edited; null while they stand as they were asked. */
  const [edited, setEdited] = useTyped<string | null>(place, "arguments", null);
  const [problem, setProblem] = useState("");
  const [isBad, setBad] = useState(false);
  const [isDenying, setDenying] = useState(note !== "");
  const tool = useTool(asks.tool);
  const isExact = isEveryNumberExact(asks.args);
  function decide(decision: "approve" | "deny") {
    if (decision === "deny") return void answer({ decision, ...(note.trim() && { reason: note.trim() }) });
    if (edited === null) return void answer({ decision });
    if (isBad) return setProblem("Correct the marked fields first.");
    const read = parseEdited(edited);
    if ("problem" in read) return setProblem(read.problem);
    if (typeof read.value !== "object" || read.value === null || Array.isArray(read.value)) return setProblem("Arguments must be an object: {…}");
    const isSame = difference(asks.args, read.value).length === 0;
    void answer({ decision, ...(!isSame && { arguments: read.value }) });
  }
  return (
    <>
      {asks.tainted.length > 0 && <p class="warn">Untrusted content led to this call: {asks.tainted.map(readable).join(", ")}. Check the arguments carefully.</p>}
      <div class="action">
        <p class="hint small"><code>{readable(asks.tool)}</code>{asks.agent && agentName(asks.agent) !== asks.server && `, asked by ${readable(agentName(asks.agent))}`}</p>
        {asks.description && <p class="words hint">{readable(asks.description)}</p>}
        {edited === null ? (
          <>
            <Values value={asks.args} title="Arguments" />
            {isExact ? <button type="button" onClick={() => setEdited(JSON.stringify(asks.args, null, 2))}><Icon name="pencil" /> Edit</button>
              : <p class="hint small">A number here has more digits than a browser can show or edit. The call is sent with all of them.</p>}
          </>
        ) : (
          <>
            <EditArguments text={edited} schema={tool?.input_schema} onChange={(text) => (setProblem(""), setEdited(text))} onBad={setBad} />
            {problem && <p class="error-text" role="alert">{problem}</p>}
            <EditChanges before={asks.args} text={edited} />
            <button type="button" onClick={() => (setProblem(""), setBad(false), setEdited(null))}>Discard changes</button>
          </>
        )}
      </div>
      {asks.reasons.map((reason, index) => <p key={index} class="hint small">{readable(reason)}</p>)}
      {asks.expires && <p class="hint small" title={moment(asks.expires)}>Expires in {until(asks.expires)}</p>}
      {isDenying ? <Denial note={note} onNote={setNote} onDeny={() => decide("deny")} onBack={() => (setNote(""), setDenying(false))} /> : (
        <p class="buttons">
          <button type="button" class="primary" data-decision="approve" onClick={() => decide("approve")}>{edited === null ? "Approve" : "Approve as edited"}</button>
          <button type="button" class="danger" data-decision="deny" onClick={() => setDenying(true)}>Deny</button>
        </p>
      )}
    </>
  );
}

interface DenialProps {
  note: string;
  onNote: (note: string) => void;
  onDeny: () => void;
  onBack: () => void;
}

/** Why a call is denied, which the agent is given. */
function Denial({ note, onNote, onDeny, onBack }: DenialProps) {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    // A note that was begun before waits until somebody returns to it.
    if (!note) field.current?.focus();
  }, []);
  return (
    <form onSubmit={(event) => (event.preventDefault(), onDeny())}>
      <label>
        Note for the agent (optional)
        <input ref={field} value={note} onInput={(event) => onNote(event.currentTarget.value)} />
      </label>
      <p class="buttons">
        <button type="submit" class="danger primary">Deny call</button>
        <button type="button" onClick={onBack}>Back</button>
      </p>
    </form>
  );
}

function QuestionBody({ asks, place, answer }: Body<Question>) {
  const [text, setText] = useTyped(place, "answer", "");
  return (
    <>
      <p class="words">{readable(asks.text)}</p>
      <p class="buttons">{asks.options.map((option) => <button type="button" key={option} onClick={() => void answer({ answer: option })}>{readable(option)}</button>)}</p>
      <label>
        Your answer
        <textarea rows={2} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      <p class="buttons"><button type="button" class="primary" disabled={!text.trim()} onClick={() => void answer({ answer: text.trim() })}>Answer</button></p>
    </>
  );
}

function FormBody({ asks, place, answer }: Body<Form>) {
  return (
    <>
      <p class="words">{readable(asks.text)}</p>
      <SchemaForm schema={asks.schema} place={`${place} answer`} onSubmit={(content) => void answer({ answer: content })} onDecline={() => void answer({ decision: "deny" })} />
    </>
  );
}

/** What an answer may be where a question does not say. */
const ANYTHING: Json = { title: "Your answer" };

function FreeBody({ asks, place, answer }: Body<Free>) {
  return (
    <>
      {asks.text && <p class="words">{readable(asks.text)}</p>}
      {asks.what !== null && Object.keys(asks.what).length > 0 && <Values value={asks.what} />}
      {asks.problem && <p class="error-text">{readable(asks.problem)}</p>}
      <SchemaForm schema={asks.schema ?? ANYTHING} action="Answer" place={`${place} answer`} onSubmit={(content) => void answer({ answer: content })} />
    </>
  );
}

function VisitBody({ asks, answer }: Omit<Body<Visit>, "place">) {
  const safe = /^https?:\/\//i.test(asks.address);
  return (
    <>
      <p class="words">{readable(asks.text)}</p>
      {asks.warning && <p class="warn">{readable(asks.warning)}</p>}
      <p>{safe ? <a href={asks.address} target="_blank" rel="noopener noreferrer">{readable(asks.address)}</a> : <code>{readable(asks.address)}</code>}</p>
      <p class="buttons">
        <button type="button" class="primary" onClick={() => void answer({ decision: "approve" })}>Done</button>
        <button type="button" class="danger" onClick={() => void answer({ decision: "deny" })}>Decline</button>
      </p>
    </>
  );
}

function UnknownBody({ asks, place, answer }: Body<Unknown>) {
  const [result, setResult] = useTyped(place, "answer", "");
  const decide = (outcome: "done" | "retry" | "skip") => void answer({ answer: { outcome, ...(outcome === "done" && result.trim() && { result: result.trim() }) } });
  return (
    <>
      <p>The call <code>{readable(asks.tool)}</code> was sent, and its outcome is unknown{asks.reason && ` (${readable(asks.reason)})`}. Check the other system, then decide.</p>
      <Values value={asks.what} title="Request" />
      <label>
        Result, if the call took effect (optional)
        <textarea rows={2} value={result} onInput={(event) => setResult(event.currentTarget.value)} />
      </label>
      <p class="buttons">
        <button type="button" class="primary" onClick={() => decide("done")}>It happened</button>
        <button type="button" onClick={() => decide("retry")}>Send it again</button>
        <button type="button" class="danger" onClick={() => decide("skip")}>Skip it</button>
      </p>
    </>
  );
}

/** What an edit changes; nothing while it is no JSON. */
function EditChanges({ before, text }: { before: Json; text: string }) {
  const read = parseEdited(text);
  const changes = "value" in read ? difference(before, read.value) : [];
  return changes.length > 0 ? <Changes changes={changes} /> : null;
}
