/** What the server sends: LangGraph's Agent Server shapes, and our own under `/v1`. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export interface Message {
  id?: string;
  /** `human`, `ai`, `tool`, `system`. */
  type: string;
  name?: string | null;
  content: string | { type: string; text?: string }[];
}

/** A question to a person; its value has the payload's fields, with `kind` and `agent`. */
export interface Interrupt {
  id: string;
  value: { [key: string]: Json };
}

export type ThreadStatus = "idle" | "busy" | "interrupted" | "error";

export interface Thread {
  thread_id: string;
  created_at: string;
  updated_at: string;
  status: ThreadStatus;
  metadata: { [key: string]: Json } | null;
  values?: Values | null;
  interrupts?: { [task: string]: Interrupt[] };
  error?: Json;
}

/** A thread as lists show it, without its state. */
export interface ThreadHead {
  thread_id: string;
  created_at: string;
  updated_at: string;
  status: ThreadStatus;
  title: string | null;
  metadata?: { [key: string]: Json } | null;
}

export interface Usage {
  input_tokens: number;
  output_tokens: number;
}

export interface Table {
  columns: string[];
  rows: Json[][];
  row_count?: number;
  truncated?: boolean;
  /** Key of the artifact with all rows, where `rows` are the first of them. */
  artifact?: string | null;
}

export interface Chart {
  vega_lite?: Json;
  svg?: string;
}

export interface Source {
  source?: string;
  reference?: string;
  quote?: string;
  /** The place in a document where the quote stands: its id, and characters. */
  document?: string;
  title?: string;
  /** Where the document has pages. */
  page?: number;
  start?: number;
  end?: number;
  [key: string]: Json | undefined;
}

/** What an agent handed back (DESIGN: a result). */
export interface AgentResult {
  id?: string;
  task: string;
  agent: string;
  status: string;
  output: string;
  tabular?: Table | null;
  chart?: Chart | null;
  confidence?: number | null;
  sources?: Source[];
  error?: { type?: string; message: string; details?: Json } | string | null;
  usage?: Usage;
  latency_ms?: number;
  attempts?: number;
  reflection?: string;
  turn?: number;
  tools?: { tool: string; arguments: Json; is_error: boolean }[];
}

export interface Citation {
  number: number;
  agent: string;
  source: string;
  arguments?: Json;
  turn?: number;
}

export interface TaskRecord {
  id: string;
  agent: string;
  task: string;
  depends_on?: string[];
  turn: number;
}

/** How a turn was planned. */
export interface Planner {
  rationale?: string;
  order?: string[];
  confidence?: number | null;
  guardrails?: string[];
}

/** The state of the star as clients see it. */
export interface Values {
  messages?: Message[];
  plan?: string[];
  tasks?: TaskRecord[];
  results?: AgentResult[];
  citations?: Citation[];
  next_step?: string[];
  planner?: Planner | null;
  turn?: number;
  answer?: string | null;
  /** How the newest turn ended. */
  finish_reason?: string | { reason: string; text?: string } | null;
  input_request?: string;
  __interrupt__?: Interrupt[];
  [key: string]: unknown;
}

export interface Run {
  run_id: string;
  thread_id: string;
  status: "pending" | "running" | "success" | "error" | "timeout" | "interrupted";
  created_at: string;
  updated_at?: string;
  metadata?: { [key: string]: Json } | null;
  /** What it was started with; an answer to a question has no input. */
  kwargs?: { input?: Json; command?: { resume?: string } | null };
}

export interface Checkpoint {
  checkpoint_id: string;
  thread_id: string;
  checkpoint_ns: string;
}

export interface ThreadState {
  values: Values;
  next: string[];
  tasks: { id: string; name: string; error: Json; interrupts: Interrupt[]; result?: Json }[];
  metadata: { step?: number; source?: string; run_id?: string; [key: string]: Json | undefined } | null;
  created_at: string | null;
  checkpoint: Checkpoint | null;
  parent_checkpoint: Checkpoint | null;
}

