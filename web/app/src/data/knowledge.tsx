/** Documents, skills, memories and teams. */

import { useState } from "preact/hooks";
import { json } from "../api/http.ts";
import type { Json } from "../api/types.ts";
import { Dialog } from "../parts/dialog.tsx";
import { useLoad } from "../parts/load.ts";
import { attempt } from "../parts/notice.tsx";
import { Empty, Shown } from "../parts/states.tsx";
import { legible } from "../parts/text.ts";
import { moment, plural } from "../parts/time.tsx";
import { Records, type Fields } from "./records.tsx";

const text = (value: Json | undefined) => (value === null || value === undefined ? "" : String(value));
const number = (value: Json | undefined) => (typeof value === "number" ? value : 0);
const fieldsOf = (value: Json | undefined): Fields => (typeof value === "object" && value !== null && !Array.isArray(value) ? value : {});

/** A place in a document that a search found. */
interface Hit {
  document: string;
  title: string;
  page?: number | null;
  section?: string | null;
  start: number;
  end: number;
  quote: string;
}

export function DocumentsView() {
  return (
    <Records
      title="Documents"
      path="v1/documents"
      key_="documents"
      id={(row) => text(row.id)}
      name={(row) => text(row.title) || text(row.path)}
      about={(row) => text(fieldsOf(row.description).summary) || `${text(row.format)}, ${plural(number(row.characters), "character")}, ${text(row.path)}`}
      empty={<p><code>perihelion documents add PATH</code> adds files; agents then quote them.</p>}
      found={(words) => <DocumentHits words={words} />}
      detail={(row) => <DocumentText id={text(row.id)} />}
    />
  );
}

function DocumentHits({ words }: { words: string }) {
  const hits = useLoad(async () => (await json<{ hits: Hit[] }>(`v1/documents/search?text=${encodeURIComponent(words)}`)).hits, [words]);
  return (
    <section aria-label="Passages">
      <h2>Passages</h2>
      <Shown of={hits} what="passages">
        {(all) => (all.length === 0 ? <Empty title="No passage fits" /> : all.map((hit) => (
          <article key={`${hit.document} ${hit.start}`} class="card">
            <p><strong>{legible(hit.title)}</strong> <span class="hint">{[hit.page && `page ${hit.page}`, hit.section && legible(hit.section)].filter(Boolean).join(", ")}</span></p>
            <blockquote>{legible(hit.quote)}</blockquote>
          </article>
        )))}
      </Shown>
    </section>
  );
}

function DocumentText({ id }: { id: string }) {
  const document = useLoad(() => json<Fields>(`v1/documents/${encodeURIComponent(id)}`), [id]);
  return (
    <Shown of={document} what="the document">
      {(fields) => <pre class="document" tabIndex={0}>{legible(text(fields.text))}</pre>}
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
      about={(row) => [text(row.agent), `succeeded ${text(row.successes)}, failed ${text(row.failures)}`, `score ${Math.round(number(row.score) * 100)} %`, row.is_stale === true && "stale: a tool that it calls changed"].filter(Boolean).join(" · ")}
      empty={<p>Agents keep what worked: an approved success becomes a skill for similar tasks.</p>}
      detail={(row) => <pre class="document" tabIndex={0}>{legible(text(row.solution))}</pre>}
    />
  );
}

const USER = "perihelion-user";

export function MemoryView() {
  const [user, setUser] = useState(() => localStorage.getItem(USER) ?? "");
  function choose(name: string) {
    localStorage.setItem(USER, name.trim());
    setUser(name.trim());
  }
  return (
    <Records
      title="Memory"
      path="v1/memory"
      query={user ? `?user=${encodeURIComponent(user)}` : null}
      key_="memories"
      id={(row) => text(row.key)}
      name={(row) => `${text(row.key)}: ${text(row.value)}`}
      about={(row) => `${text(row.kind)} since ${moment(text(row.since))}, from ${text(row.source)}`}
      empty={<p>{user ? "Facts and preferences that this user says are remembered here, and forgotten when you delete them." : "Name the user whose memories you want to see."}</p>}
      tools={() => <label class="inline">User <input value={user} onChange={(event) => choose(event.currentTarget.value)} /></label>}
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
