/** Documents, skills, memories and teams. */

import { useState } from "preact/hooks";
import { json, send } from "../api/http.ts";
import type { Json } from "../api/types.ts";
import { Dialog } from "../parts/dialog.tsx";
import { JsonView } from "../parts/json-view.tsx";
import { useLoad } from "../parts/load.ts";
import { attempt } from "../parts/notice.tsx";
import { Shown } from "../parts/states.tsx";
import { legible } from "../parts/text.ts";
import { Records, type Fields } from "./records.tsx";

const text = (value: Json | undefined) => (value === null || value === undefined ? "" : String(value));

export function DocumentsView() {
  return (
    <Records
      title="Documents"
      path="v1/documents"
      key_="documents"
      id={(row) => text(row.id)}
      name={(row) => text(row.title) || text(row.path)}
      about={(row) => text(row.summary) || text(row.path)}
      empty={<p>Upload a file, or run <code>perihelion documents add PATH</code>.</p>}
      tools={(reload) => (
        <label class="button">
          Upload
          <input class="hidden" type="file" multiple onChange={(event) => void upload(event.currentTarget.files).then(reload)} />
        </label>
      )}
      detail={(row) => <DocumentText id={text(row.id)} />}
    />
  );
}

async function upload(files: FileList | null) {
  for (const file of files ?? []) {
    await attempt(
      () => send(`v1/documents?title=${encodeURIComponent(file.name)}`, { method: "POST", body: file, headers: { "content-type": "application/octet-stream" } }),
      `${file.name} was added.`,
    );
  }
}

function DocumentText({ id }: { id: string }) {
  const document = useLoad(() => json<Fields>(`v1/documents/${encodeURIComponent(id)}`), [id]);
  return (
    <Shown of={document} what="the document">
      {(fields) => (typeof fields.text === "string" ? <pre class="document">{legible(fields.text)}</pre> : <JsonView value={fields} />)}
    </Shown>
  );
}

export function SkillsView() {
  return (
    <Records
      title="Skills"
      path="v1/skills"
      key_="skills"
      id={(row) => text(row.id)}
      name={(row) => text(row.task)}
      about={(row) => `${text(row.agent)} ${row.score === undefined ? "" : `score ${text(row.score)}`} ${row.stale ? "stale: the server’s tools changed" : ""}`}
      empty={<p>Agents store what worked: an approved success becomes a skill.</p>}
    />
  );
}

export function MemoryView() {
  return (
    <Records
      title="Memory"
      path="v1/memory"
      key_="memories"
      id={(row) => text(row.key)}
      name={(row) => `${text(row.key)}: ${text(row.value)}`}
      about={(row) => `${text(row.kind)} ${text(row.since ?? row.created_at)}`}
      empty={<p>Facts and preferences that you say are remembered here, and forgotten when you delete them.</p>}
    />
  );
}

export function TeamsView() {
  const [designing, setDesigning] = useState(false);
  return (
    <>
      <Records
        title="Teams"
        path="v1/teams"
        key_="teams"
        id={(row) => text(row.name)}
        name={(row) => text(row.name)}
        about={(row) => text(row.description)}
        empty={<p>Say a goal, and the architect designs a team of agents for it.</p>}
        tools={() => <button type="button" class="primary" onClick={() => setDesigning(true)}>New team</button>}
      />
      {designing && <TeamDialog onClose={() => setDesigning(false)} />}
    </>
  );
}

function TeamDialog({ onClose }: { onClose: () => void }) {
  const [goal, setGoal] = useState("");
  const [design, setDesign] = useState("");
  const [busy, setBusy] = useState(false);
  async function draft() {
    setBusy(true);
    await attempt(async () => setDesign(JSON.stringify(await json<Json>("v1/teams/design", { goal }), null, 2)));
    setBusy(false);
  }
  async function save() {
    if (await attempt(() => json("v1/teams", JSON.parse(design) as Json), "The team was saved.")) onClose();
  }
  return (
    <Dialog title="New team" onClose={onClose} wide>
      <label>
        Goal
        <textarea rows={2} value={goal} onInput={(event) => setGoal(event.currentTarget.value)} />
      </label>
      <p class="buttons"><button type="button" disabled={busy || !goal.trim()} onClick={() => void draft()}>{busy ? "Designing…" : "Design"}</button></p>
      {design && (
        <>
          <textarea class="code" rows={16} aria-label="The design" value={design} onInput={(event) => setDesign(event.currentTarget.value)} />
          <p class="buttons"><button type="button" class="primary" onClick={() => void save()}>Save</button></p>
        </>
      )}
    </Dialog>
  );
}
