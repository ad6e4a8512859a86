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
  title?: string | null;
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
  /** What is known of a tool, such as `notes.append_note`; nothing where its server is away. */
  tool: async (name: string) => (await agents.list()).agents.flatMap(({ server, tools }) => tools.map((tool) => ({ ...tool, whole: `${server}.${tool.name}` }))).find(({ whole }) => whole === name) as Tool | undefined,
  names: async () => (await agents.list()).agents.map((agent) => agent.name),
};
