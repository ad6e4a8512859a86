/** The demo: its questions, and the way to a model of one's own. */

import { useState } from "preact/hooks";
import { models, type LocalModel } from "../api/models.ts";
import { QUESTIONS } from "../demo.ts";
import { Dialog } from "../parts/dialog.tsx";
import { Icon } from "../parts/icon.tsx";
import { useLoad } from "../parts/load.ts";
import { attempt } from "../parts/notice.tsx";
import { go } from "../router.ts";
import { begin } from "./conversation.ts";
import { newId } from "./draft.ts";

/** The questions that the demo's script answers; each begins a thread. */
export function DemoQuestions() {
  const [isAsking, setAsking] = useState(false);
  async function ask(question: string) {
    setAsking(true);
    await attempt(async () => go("chat", await begin({ question, include_data: true }, { id: newId(), isRetry: false })));
    setAsking(false);
  }
  return <>{QUESTIONS.map((question) => <button key={question} type="button" class="example" disabled={isAsking} onClick={() => void ask(question)}><Icon name="message" /> <span>{question}</span></button>)}</>;
}

/** Says how to set a model: one that was found on the machine, or else any. */
export function ModelWords({ local: [found] }: { local: LocalModel[] }) {
  if (found) return <>{found.server} serves {found.model} here: <code>perihelion init --local {found.url}</code> writes its settings.</>;
  return <>Set <code>OPENAI_API_KEY</code> or <code>OPENAI_BASE_URL</code>; <code>perihelion doctor</code> checks them.</>;
}

/** Leads from the demo to one's own model and data. */
export function UseYourModel() {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>Use your model</button>
      {isOpen && <Steps onClose={() => setOpen(false)} />}
    </>
  );
}

function Steps({ onClose }: { onClose: () => void }) {
  // Those who do not operate the service are not told.
  const local = useLoad(() => models.local().catch(() => []), []);
  return (
    <Dialog title="Use your model" onClose={onClose}>
      <ol>
        <li><code>perihelion init</code> writes settings and a first <code>mcp-servers.toml</code>.</li>
        <li>{local.data ? <ModelWords local={local.data} /> : "Looking for models on this machine…"}</li>
        <li><code>perihelion serve</code> starts with your model and servers.</li>
      </ol>
    </Dialog>
  );
}
