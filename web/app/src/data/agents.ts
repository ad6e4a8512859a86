/** Agents and the servers behind them. */

import { json } from "../api/http.ts";
import type { Json } from "../api/types.ts";

export interface ToolInfo {
  name: string;
  description?: string;
  input_schema?: Json;
  read_only?: boolean;
  needs_approval?: boolean;
}

export interface AgentInfo {
  name: string;
  server: string;
  kind?: string;
  description: string;
  status?: string;
  problem?: string | null;
  open_world?: boolean;
  tools: ToolInfo[];
}

export const agents = {
  list: () => json<{ agents: AgentInfo[]; problems: { server: string; problem: string }[] }>("v1/agents"),
  /** What is known of a tool, such as `notes.append_note`; nothing where its server is away. */
  tool: async (name: string) => (await agents.list()).agents.flatMap(({ server, tools }) => tools.map((tool) => ({ ...tool, whole: `${server}.${tool.name}` }))).find(({ whole }) => whole === name) as ToolInfo | undefined,
  names: async () => (await agents.list()).agents.map((agent) => agent.name),
};
