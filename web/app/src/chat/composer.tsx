/** Where a question is written, with the request's options. */

import { useEffect, useRef, useState } from "preact/hooks";
import { Sendings, useUploads } from "../documents/uploads.tsx";
import { agentName } from "../parts/text.ts";
import type { Request } from "./conversation.ts";

interface Props {
  agents: string[];
  busy: boolean;
  onSend: (request: Request) => void;
  onStop: () => void;
  /** Text to begin with, when a turn is edited. */
  draft?: string;
  autoFocus?: boolean;
}

/** Key of the request's context under which agents find which documents were attached. */
const ATTACHED = "attached_documents";

type Choice = "free" | "prefer" | "disable";

export function Composer({ agents, busy, onSend, onStop, draft = "", autoFocus }: Props) {
  const [question, setQuestion] = useState(draft);
  const [choices, setChoices] = useState<{ [agent: string]: Choice }>({});
  const [context, setContext] = useState("");
  const [turns, setTurns] = useState("");
  const [data, setData] = useState(true);
  const [wishes, setWishes] = useState("");
  const box = useRef<HTMLTextAreaElement>(null);
  const file = useRef<HTMLInputElement>(null);
  const uploads = useUploads(() => {});
  const sending = uploads.all.some((one) => !one.added && !one.problem);

  useEffect(() => setQuestion(draft), [draft]);
  useEffect(() => {
    if (autoFocus) box.current?.focus();
  }, [autoFocus]);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    element.style.height = "auto";
    element.style.height = `${Math.min(element.scrollHeight, 240)}px`;
  }, [question]);

  function send() {
    const text = question.trim();
    if (!text || busy || sending) return;
    const chosen = (choice: Choice) => Object.keys(choices).filter((agent) => choices[agent] === choice);
    const pairs = context.split("\n").map((line) => line.split(/=(.*)/s)).filter(([key]) => key?.trim());
    const request: Request = { question: text, include_data: data };
    if (chosen("prefer").length) request.prefer_agents = chosen("prefer");
    if (chosen("disable").length) request.disable_agents = chosen("disable");
    const attached = uploads.all.flatMap((one) => (one.added ? [`${one.added.document.title} (document ${one.added.document.id})`] : []));
    if (attached.length) pairs.push([ATTACHED, attached.join("; ")]);
    if (pairs.length) request.context = Object.fromEntries(pairs.map(([key, value]) => [key?.trim() ?? "", value?.trim() ?? ""]));
    if (Number(turns) > 0) request.max_turns = Number(turns);
    if (wishes.trim()) request.system_prompt = wishes.trim();
    onSend(request);
    setQuestion("");
    for (const one of uploads.all) uploads.forget(one.name);
  }

  function key(event: KeyboardEvent) {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      send();
    }
  }

  return (
    <form
      class="composer"
      onSubmit={(event) => (event.preventDefault(), send())}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        if (event.dataTransfer?.files.length) void uploads.send(event.dataTransfer.files);
      }}
    >
      <Sendings all={uploads.all} forget={uploads.forget} />
      <label class="hidden" for="question">Your question</label>
      <textarea id="question" ref={box} rows={1} value={question} placeholder="Ask something" onInput={(event) => setQuestion(event.currentTarget.value)} onKeyDown={key} />
      <button type="button" onClick={() => file.current?.click()} title="Attach documents for agents to quote, or drop files here">Attach</button>
      <input ref={file} type="file" multiple hidden aria-label="Files to attach" onChange={(event) => {
        if (event.currentTarget.files?.length) void uploads.send([...event.currentTarget.files]);
        event.currentTarget.value = "";
      }} />
      {busy ? (
        <button type="button" class="danger" onClick={onStop}>Stop</button>
      ) : (
        <button type="submit" class="primary" disabled={!question.trim() || sending}>Ask</button>
      )}
      <details class="options">
        <summary>Options</summary>
        <fieldset>
          <legend>Agents</legend>
          {agents.length === 0 && <p class="hint">No agents yet: declare MCP servers in mcp-servers.toml.</p>}
          {agents.map((agent) => (
            <label key={agent} class="choice">
              {agentName(agent)}
              <select value={choices[agent] ?? "free"} onChange={(event) => setChoices({ ...choices, [agent]: event.currentTarget.value as Choice })}>
                <option value="free">as planned</option>
                <option value="prefer">preferred</option>
                <option value="disable">disabled</option>
              </select>
            </label>
          ))}
        </fieldset>
        <label>
          Context, one <code>key=value</code> a line
          <textarea rows={2} value={context} onInput={(event) => setContext(event.currentTarget.value)} />
        </label>
        <label>
          Instructions for the work and the answer
          <textarea rows={2} value={wishes} onInput={(event) => setWishes(event.currentTarget.value)} />
        </label>
        <label>
          Maximum supervisor turns
          <input type="number" min="1" value={turns} onInput={(event) => setTurns(event.currentTarget.value)} />
        </label>
        <label class="choice">
          <input type="checkbox" checked={data} onChange={(event) => setData(event.currentTarget.checked)} /> Include tables in the answer
        </label>
      </details>
    </form>
  );
}
