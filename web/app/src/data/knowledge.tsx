/** Documents, skills and memories. */

import { useState } from "preact/hooks";
import { json } from "../api/http.ts";
import { useLoad } from "../parts/load.ts";
import { Empty, Shown } from "../parts/states.tsx";
import { legible } from "../parts/text.ts";
import { moment, plural } from "../parts/time.tsx";
import { fieldsOf, number, text, type Fields } from "./fields.ts";
import { Records } from "./records.tsx";

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
