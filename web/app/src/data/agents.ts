/** Agents and the servers behind them. */

import { json } from "../api/http.ts";
import type { Json } from "../api/types.ts";

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
  list: () => json<{ agents: AgentInfo[]; problems?: { server: string; message: string; quarantined?: boolean; changes?: Json }[] }>("v1/agents"),
  names: async () => (await agents.list()).agents.map((agent) => agent.name),
  reload: () => json<Json>("v1/agents/reload", {}),
  approve: (server: string) => json<Json>(`v1/agents/${encodeURIComponent(server)}/approve`, {}),
};
