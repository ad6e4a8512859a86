/** The form of a team: its description, and the fields of each member. */

import type { Json } from "../api/types.ts";
import { Icon } from "../parts/icon.tsx";
import { fieldsOf, text, type Fields } from "./fields.ts";

const NEW = { name: "", role: "", goal: "", servers: [] };

export function TeamForm({ design, change }: { design: Fields; change: (design: Json) => void }) {
  const members = Array.isArray(design.agents) ? design.agents.map(fieldsOf) : [];
  const put = (agents: Fields[]) => change({ ...design, agents });
  return (
    <>
      <label>Description<input value={text(design.description)} onInput={(event) => change({ ...design, description: event.currentTarget.value })} /></label>
      {members.map((member, index) => <Member key={index} member={member} change={(next) => put(members.map((one, at) => (at === index ? next : one)))} remove={() => put(members.filter((_, at) => at !== index))} />)}
      <p class="buttons"><button type="button" onClick={() => put([...members, NEW])}><Icon name="plus" /> Add an agent</button></p>
    </>
  );
}

function Member({ member, change, remove }: { member: Fields; change: (member: Fields) => void; remove: () => void }) {
  const name = text(member.name);
  const field = (label: string, key: string) => <label>{label}<input value={text(member[key])} onInput={(event) => change({ ...member, [key]: event.currentTarget.value })} /></label>;
  const servers = Array.isArray(member.servers) ? member.servers.map(text).join(", ") : "";
  return (
    <fieldset class="card member">
      <legend class="hidden">Agent {name}</legend>
      {field("Name", "name")}
      {field("Role", "role")}
      <label class="wide">Goal<textarea rows={2} value={text(member.goal)} onInput={(event) => change({ ...member, goal: event.currentTarget.value })} /></label>
      <label>Servers, separated by commas<input value={servers} onChange={(event) => change({ ...member, servers: event.currentTarget.value.split(",").map((one) => one.trim()).filter(Boolean) })} /></label>
      <button type="button" class="square" aria-label={`Remove the agent ${name}`} title="Remove" onClick={remove}><Icon name="trash" /></button>
    </fieldset>
  );
}
