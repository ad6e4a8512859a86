/** Agents and the servers behind them. */

import { json } from "../api/http.ts";

export interface AgentInfo {
  name: string;
  server: string;
  kind?: string;
  description: string;
  status?: string;
  problem?: string | null;
  open_world?: boolean;
  tools: { name: string; description?: string; read_only?: boolean; needs_approval?: boolean }[];
}

export const agents = {
  list: () => json<{ agents: AgentInfo[]; problems: { server: string; problem: string }[] }>("v1/agents"),
  names: async () => (await agents.list()).agents.map((agent) => agent.name),
};
