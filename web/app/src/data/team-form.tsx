/** The canvas of a team: its drawing, and beside it the form of the member that is chosen there. */

import { useState } from "preact/hooks";
import type { Json } from "../api/types.ts";
import { Icon } from "../parts/icon.tsx";
import { useLoad } from "../parts/load.ts";
import { readable } from "../parts/text.ts";
import { agents } from "./agents.ts";
import { fieldsOf, text, type Fields } from "./fields.ts";
import { TeamDrawing, type Design } from "./team-drawing.tsx";

const NEW = { name: "", role: "", goal: "", servers: [] };

const textsOf = (list: Json | undefined) => (Array.isArray(list) ? list.map(text) : []);

const servers = async () => [...new Set((await agents.list()).agents.map(({ server }) => server))];

export function TeamForm({ design, drawn, change }: { design: Fields; drawn: Design; change: (design: Json) => void }) {
  const [chosen, setChosen] = useState(0);
  const known = useLoad(servers, []);
  const members = Array.isArray(design.agents) ? design.agents.map(fieldsOf) : [];
  const member = members[chosen];
  const put = (agents: Fields[]) => change({ ...design, agents });
  const add = () => (put([...members, NEW]), setChosen(members.length));
  const remove = () => (put(members.filter((_, at) => at !== chosen)), setChosen(Math.max(0, chosen - 1)));
  return (
    <>
      <label>Description<input value={text(design.description)} onInput={(event) => change({ ...design, description: event.currentTarget.value })} /></label>
      <div class="canvas">
        <div>
          <TeamDrawing design={drawn} chosen={chosen} onChoose={setChosen} />
          <p class="buttons" role="group" aria-label="Members">
            {members.map((one, at) => <button key={at} type="button" aria-pressed={at === chosen} onClick={() => setChosen(at)}>{readable(text(one.name)) || "New agent"}</button>)}
            <button type="button" onClick={add}><Icon name="plus" /> Add an agent</button>
          </p>
        </div>
        {member && <Member key={chosen} member={member} known={known.data ?? []} change={(next) => put(members.with(chosen, next))} remove={remove} />}
      </div>
    </>
  );
}

function Member({ member, known, change, remove }: { member: Fields; known: string[]; change: (member: Fields) => void; remove: () => void }) {
  const name = text(member.name);
  const field = (label: string, key: string) => <label>{label}<input value={text(member[key])} onInput={(event) => change({ ...member, [key]: event.currentTarget.value })} /></label>;
  const its = textsOf(member.servers);
  return (
    <fieldset class="card member">
      <legend class="hidden">Agent {name}</legend>
      {field("Name", "name")}
      {field("Role", "role")}
      <label>Goal<textarea rows={3} value={text(member.goal)} onInput={(event) => change({ ...member, goal: event.currentTarget.value })} /></label>
      <fieldset>
        <legend>Servers</legend>
        {[...new Set([...known, ...its])].map((server) => (
          <label key={server} class="choice"><input type="checkbox" checked={its.includes(server)} onChange={(event) => change({ ...member, servers: event.currentTarget.checked ? [...its, server] : its.filter((one) => one !== server) })} /> {readable(server)}</label>
        ))}
      </fieldset>
      <p class="buttons"><button type="button" class="danger" aria-label={`Remove the agent ${name}`} onClick={remove}><Icon name="trash" /> Remove</button></p>
    </fieldset>
  );
}
