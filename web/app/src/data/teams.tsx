/** Teams: what they are made of, and their design from a goal. */

import { useState } from "preact/hooks";
import { json } from "../api/http.ts";
import type { Json } from "../api/types.ts";
import { Dialog } from "../parts/dialog.tsx";
import { attempt } from "../parts/notice.tsx";
import { legible } from "../parts/text.ts";
import { fieldsOf, text, type Fields } from "./fields.ts";
import { Records } from "./records.tsx";

export function TeamsView() {
  const [designing, setDesigning] = useState(false);
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
        detail={(row) => <TeamView team={row} />}
        empty={<p>Say a goal, and the architect designs a team of agents for it.</p>}
        tools={() => <button type="button" class="primary" onClick={() => setDesigning(true)}>New team</button>}
      />
      {designing && <TeamDialog onClose={() => (setDesigning(false), setReads(reads + 1))} />}
    </>
  );
}

function TeamView({ team }: { team: Fields }) {
  const members = fieldsOf(team.design).agents;
  return (
    <>
      <p class="hint">Version {text(team.version)}, chosen as <code>{legible(text(team.agent))}</code></p>
      <table>
        <thead><tr><th>Agent</th><th>Role</th><th>Goal</th><th>Servers</th></tr></thead>
        <tbody>
          {(Array.isArray(members) ? members : []).map(fieldsOf).map((member) => (
            <tr key={text(member.name)}>
              <th scope="row">{legible(text(member.name))}</th>
              <td>{legible(text(member.role))}</td>
              <td>{legible(text(member.goal))}</td>
              <td>{Array.isArray(member.servers) ? legible(member.servers.map(text).join(", ")) : ""}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

function TeamDialog({ onClose }: { onClose: () => void }) {
  const [goal, setGoal] = useState("");
  const [design, setDesign] = useState("");
  const [busy, setBusy] = useState(false);
  async function draft() {
    setBusy(true);
    await attempt(async () => setDesign(JSON.stringify((await json<{ design: Json }>("v1/teams", { goal })).design, null, 2)));
    setBusy(false);
  }
  async function save() {
    if (await attempt(() => json("v1/teams", { design: JSON.parse(design) as Json }), "The team was saved.")) onClose();
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
