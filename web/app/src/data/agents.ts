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
  tools: Tool[];
}

export interface Tool {
  name: string;
  description?: string;
  input_schema: Json;
  read_only?: boolean;
  needs_approval?: boolean;
}

/** How a call ended that was made to try a tool. */
export interface Tried {
  result: Json;
  is_error: boolean;
  ms: number;
}

export const agents = {
  list: () => json<{ agents: AgentInfo[]; problems: { server: string; problem: string }[] }>("v1/agents"),
  /** Calls a tool once, outside any thread. */
  call: (agent: string, tool: string, args: Json) => json<Tried>(`v1/agents/${encodeURIComponent(agent)}/tools/${encodeURIComponent(tool)}`, { arguments: args ?? {} }),
  names: async () => (await agents.list()).agents.map((agent) => agent.name),
};
