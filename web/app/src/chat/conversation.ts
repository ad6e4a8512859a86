/** One open thread: what it holds, the run under way, and what can be done with it. */

import { signal, type Signal } from "@preact/signals";
import { runs, threads } from "../api/threads.ts";
import type { Checkpoint, Interrupt, Json, Run, Values } from "../api/types.ts";
import { complain } from "../parts/notice.tsx";
import { follow, type Connection } from "./follow.ts";
import { after, idle, type Live } from "./live.ts";

export interface Request {
  question: string;
  prefer_agents?: string[];
  disable_agents?: string[];
  context?: { [key: string]: string };
  max_turns?: number;
  include_data?: boolean;
  system_prompt?: string;
}

export class Conversation {
  readonly values: Signal<Values | null> = signal(null);
  readonly interrupts: Signal<Interrupt[]> = signal([]);
  readonly live: Signal<Live> = signal(idle);
  readonly run: Signal<Run | null> = signal(null);
  readonly connection: Signal<Connection> = signal("over");
  readonly error: Signal<string | null> = signal(null);
  readonly loading: Signal<boolean> = signal(true);
  private readonly closed = new AbortController();
  private following: AbortController | null = null;

  constructor(readonly thread: string) {
    void this.open();
  }

  /** Reads the thread, and follows the run that is under way. */
  private async open() {
    try {
      await this.read();
      const list = await runs.list(this.thread);
      const active = list.find((run) => run.status === "pending" || run.status === "running");
      if (active) this.watch(active);
    } catch (error) {
      this.error.value = (error as Error).message;
    }
    this.loading.value = false;
  }

  private async read() {
    const thread = await threads.get(this.thread);
    if (this.closed.signal.aborted) return;
    this.values.value = thread.values ?? null;
    this.interrupts.value = Object.values(thread.interrupts ?? {}).flat();
    this.error.value = thread.status === "error" ? describe(thread.error) : null;
  }

  private watch(run: Run) {
    this.following?.abort();
    const following = new AbortController();
    this.following = following;
    this.closed.signal.addEventListener("abort", () => following.abort(), { once: true });
    this.run.value = run;
    this.live.value = idle;
    // Events of one frame are drawn once.
    let next: Live = idle;
    let drawing = 0;
    const draw = () => {
      drawing = 0;
      if (following.signal.aborted) return;
      this.live.value = next;
      if (next.values) this.values.value = next.values;
      this.interrupts.value = next.interrupts;
    };
    const follower = {
      event: (event: Parameters<typeof after>[1]) => {
        next = after(next, event);
        drawing ||= requestAnimationFrame(draw);
      },
      connection: (state: Connection) => {
        this.connection.value = state;
      },
    };
    follow(this.thread, run.run_id, follower, following.signal)
      .then(async () => {
        if (following.signal.aborted) return;
        cancelAnimationFrame(drawing);
        await this.read();
        this.error.value ??= next.error;
        this.run.value = null;
        this.live.value = { ...idle, tasks: next.tasks, progress: next.progress };
      })
      .catch(complain);
  }

  private async start(body: { [key: string]: unknown }) {
    this.error.value = null;
    this.watch(await runs.start(this.thread, body));
  }

  /** Asks; at an older checkpoint this begins a branch there. */
  async ask(request: Request, checkpoint?: Checkpoint | null) {
    await this.start({
      input: request,
      ...(checkpoint && { checkpoint_id: checkpoint.checkpoint_id }),
    });
  }

  /** Answers open questions, by their ids. */
  async answer(answers: { [interrupt: string]: Json }) {
    await this.start({ command: { resume: answers } });
  }

  /** Continues a run that failed or was stopped. */
  async resume() {
    await this.start({ input: null });
  }

  async stop() {
    const run = this.run.value;
    if (run) await runs.cancel(this.thread, run.run_id);
  }

  close() {
    this.closed.abort();
  }
}

function describe(error: Json | undefined): string {
  if (typeof error === "string") return error;
  if (typeof error === "object" && error !== null && !Array.isArray(error)) {
    return String(error.message ?? error.error ?? JSON.stringify(error));
  }
  return "the last run failed";
}
