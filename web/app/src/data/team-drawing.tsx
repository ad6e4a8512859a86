/** A team as a picture: its lead, the agents, and the servers that each works with. */

import { clip, readable } from "../parts/text.ts";

export interface Member {
  name: string;
  role: string;
  goal: string;
  servers: string[];
}

export interface Design {
  name: string;
  description: string;
  agents: Member[];
}

const ROW = 52;
const [LEAD, AGENTS, SERVERS, WIDTH] = [60, 250, 460, 540];

interface Props {
  design: Design;
  /** The member whose form is open. */
  chosen?: number;
  /** Opens the form of a member; those who use no mouse have buttons. */
  onChoose?: (index: number) => void;
}

export function TeamDrawing({ design, chosen, onChoose }: Props) {
  const servers = [...new Set(design.agents.flatMap((member) => member.servers))];
  const height = Math.max(design.agents.length, servers.length, 1) * ROW + 16;
  const middle = (index: number, all: number) => height / 2 + (index - (all - 1) / 2) * ROW;
  const words = design.agents.map((member) => `${member.name} with ${member.servers.join(" and ") || "no server"}`).join("; ");
  return (
    <svg class="team" viewBox={`0 0 ${WIDTH} ${height}`} role="img" aria-label={`Team ${design.name}: ${words}`}>
      {design.agents.map((member, index) => {
        const y = middle(index, design.agents.length);
        return (
          <g key={index}>
            <line x1={LEAD} y1={height / 2} x2={AGENTS} y2={y} />
            {member.servers.map((server) => <line key={server} x1={AGENTS} y1={y} x2={SERVERS} y2={middle(servers.indexOf(server), servers.length)} />)}
          </g>
        );
      })}
      <Node x={LEAD} y={height / 2} text={design.name} kind="lead" />
      {design.agents.map((member, index) => <Node key={index} x={AGENTS} y={middle(index, design.agents.length)} text={member.name} below={member.role} kind={index === chosen ? "agent chosen" : "agent"} onClick={onChoose && (() => onChoose(index))} />)}
      {servers.map((server, index) => <Node key={server} x={SERVERS} y={middle(index, servers.length)} text={server} kind="server" />)}
    </svg>
  );
}

function Node({ x, y, text, below, kind, onClick }: { x: number; y: number; text: string; below?: string; kind: string; onClick?: (() => void) | undefined }) {
  return (
    <g class={onClick ? `${kind} choosable` : kind} onClick={onClick}>
      <title>{readable(below ? `${text}: ${below}` : text)}</title>
      <rect x={x - 55} y={y - 18} width="110" height="36" rx="8" />
      <text x={x} y={below ? y - 2 : y + 4}>{readable(clip(text, 15))}</text>
      {below && <text class="below" x={x} y={y + 12}>{readable(clip(below, 14))}</text>}
    </g>
  );
}

/** Reads a design from JSON, as far as it can be drawn. */
export function designOf(value: unknown): Design | null {
  if (typeof value !== "object" || value === null) return null;
  const { name, description, agents } = value as { [key: string]: unknown };
  if (!Array.isArray(agents)) return null;
  const text = (one: unknown) => (typeof one === "string" ? one : "");
  const members = agents.filter((one) => typeof one === "object" && one !== null).map((one: { [key: string]: unknown }) => ({
    name: text(one.name),
    role: text(one.role),
    goal: text(one.goal),
    servers: Array.isArray(one.servers) ? one.servers.map(text) : [],
  }));
  return { name: text(name), description: text(description), agents: members };
}
