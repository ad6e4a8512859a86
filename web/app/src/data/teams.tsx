/** Teams: drawn, designed from a goal, edited, kept in versions. */

import { useState } from "preact/hooks";
import { json } from "../api/http.ts";
import type { Json } from "../api/types.ts";
import { Changes } from "../inspector/changes.tsx";
import { difference } from "../inspector/difference.ts";
import { Dialog } from "../parts/dialog.tsx";
import { parseEdited } from "../parts/edited.ts";
import { useLoad } from "../parts/load.ts";
import { attempt } from "../parts/notice.tsx";
import { Shown } from "../parts/states.tsx";
import { readable } from "../parts/text.ts";
import { plural } from "../parts/time.tsx";
import { fieldsOf, number, text, type Fields } from "./fields.ts";
import { Records } from "./records.tsx";
import { TeamDrawing, designOf } from "./team-drawing.tsx";
import { TeamForm } from "./team-form.tsx";

/** What is open: nothing, a new team, or the design of one that is kept. */
type Editing = { kept: Json | null } | null;

export function TeamsView() {
  const [editing, setEditing] = useState<Editing>(null);
  const [reads, setReads] = useState(0);
  return (
    <>
      <Records
        title="Teams"
        path="v1/teams"
        key_="teams"
        id={(row) => text(row.name)}
        name={(row) => text(row.name)}
        about={(row) => text(fieldsOf(row.design).description)}
        reads={reads}
        detail={(row) => <TeamView team={row} onEdit={() => setEditing({ kept: row.design ?? null })} />}
        empty={<p>Enter a goal. The architect designs a team of agents for it.</p>}
        tools={() => <button type="button" class="primary" onClick={() => setEditing({ kept: null })}>New team</button>}
      />
      {editing && <TeamDialog kept={editing.kept} onClose={() => (setEditing(null), setReads(reads + 1))} />}
    </>
  );
}

function TeamView({ team, onEdit }: { team: Fields; onEdit: () => void }) {
  const design = designOf(team.design);
  if (!design) return null;
  return (
    <>
      <p class="hint">Version {text(team.version)}, chosen as <code>{readable(text(team.agent))}</code></p>
      <TeamDrawing design={design} />
      <table>
        <thead><tr><th>Agent</th><th>Role</th><th>Goal</th><th>Servers</th></tr></thead>
        <tbody>
          {design.agents.map((member) => (
            <tr key={member.name}>
              <th scope="row">{readable(member.name)}</th>
              <td>{readable(member.role)}</td>
              <td>{readable(member.goal)}</td>
              <td>{readable(member.servers.join(", "))}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="buttons"><button type="button" onClick={onEdit}>Edit</button></p>
      {number(team.version) > 1 && <Versions team={team} />}
    </>
  );
}

/** What the newest version changed, compared with an earlier one. */
function Versions({ team }: { team: Fields }) {
  const newest = number(team.version);
  const [version, setVersion] = useState(newest - 1);
  const earlier = useLoad(() => json<Fields>(`v1/teams/${encodeURIComponent(text(team.name))}?version=${version}`), [version]);
  return (
    <section aria-label="Versions">
      <label class="inline">Compare with version <select value={version} onChange={(event) => setVersion(Number(event.currentTarget.value))}>{Array.from({ length: newest - 1 }, (_, index) => <option key={index} value={newest - 1 - index}>{newest - 1 - index}</option>)}</select></label>
      <Shown of={earlier} what="the version">{(old) => <Changes changes={difference(old.design ?? null, team.design ?? null)} />}</Shown>
    </section>
  );
}

/** The editor: a goal is designed, the design is drawn and edited, and what changes is shown before it is kept. */
function TeamDialog({ kept, onClose }: { kept: Json | null; onClose: () => void }) {
  const [goal, setGoal] = useState("");
  const [written, setWritten] = useState(kept === null ? "" : JSON.stringify(kept, null, 2));
  const [busy, setBusy] = useState(false);
  const read = written ? parseEdited(written) : null;
  const value = read && "value" in read ? read.value : null;
  const drawn = designOf(value);
  const changes = kept !== null && value !== null ? difference(kept, value) : [];
  const write = (design: Json) => setWritten(JSON.stringify(design, null, 2));
  async function design() {
    setBusy(true);
    await attempt(async () => write((await json<{ design: Json }>("v1/teams", { goal })).design));
    setBusy(false);
  }
  async function save() {
    if (await attempt(() => json("v1/teams", { design: value }), "Team saved")) onClose();
  }
  return (
    <Dialog title={kept === null ? "New team" : "Edit the team"} onClose={onClose} unsaved={kept === null ? written !== "" || goal !== "" : changes.length > 0 || (value === null && written !== "")} wide>
      <label>
        Goal
        <textarea rows={2} value={goal} onInput={(event) => setGoal(event.currentTarget.value)} />
      </label>
      <p class="buttons"><button type="button" disabled={busy || !goal.trim()} onClick={() => void design()}>{busy ? "Designing…" : kept === null ? "Design" : "Design again"}</button></p>
      {written && (
        <>
          {drawn && <TeamForm design={fieldsOf(value)} drawn={drawn} change={write} />}
          <details open={!drawn}>
            <summary>JSON</summary>
            <textarea class="code" rows={14} aria-label="The design" value={written} onInput={(event) => setWritten(event.currentTarget.value)} />
          </details>
          {read && "problem" in read && <p class="error-text" role="alert">{read.problem}</p>}
          {kept !== null && changes.length > 0 && (
            <section aria-label="Changes">
              <h3>Changes <span class="hint">{plural(changes.length, "change")}</span></h3>
              <Changes changes={changes} />
            </section>
          )}
          <p class="buttons"><button type="button" class="primary" disabled={!drawn || (kept !== null && changes.length === 0)} onClick={() => void save()}>Save</button></p>
        </>
      )}
    </Dialog>
  );
}
