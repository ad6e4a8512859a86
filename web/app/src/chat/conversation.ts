/** One open thread: what it holds, the run under way, and what can be done with it. */

import { signal, type Signal } from "@preact/signals";
import { approvals, type Reply } from "../api/approvals.ts";
import { SUPERVISOR, isOwn } from "../api/graphs.ts";
import { ServerError } from "../api/http.ts";
import { runs, threads } from "../api/threads.ts";
import type { Checkpoint, Interrupt, Json, Run, ThreadStatus, Values } from "../api/types.ts";
import { complain } from "../parts/notice.tsx";
import { threadsChanged } from "./changed.ts";
import { feedbackOf, type Feedback } from "./feedback.tsx";
import { follow, type Connection } from "./follow.ts";
import { after, idle, type Live } from "./live.ts";
import { endedEarly } from "./turns.ts";

export interface Request {
  question: string;
  prefer_agents?: string[];
  disable_agents?: string[];
  context?: { [key: string]: string };
  max_turns?: number;
  include_data?: boolean;
  system_prompt?: string;
}

/** Under which id a request is sent, whether it may have arrived already, and which open question it answers. */
export interface Sending {
  id: string;
  isRetry: boolean;
  answers?: string | undefined;
}

/** Key of a run's metadata that has the id of its request. */
const REQUEST = "request_id";

/** Returns the run that a request began, if the server accepted it. */
async function acceptedRun(thread: string, id: string): Promise<Run | undefined> {
  return (await runs.list(thread)).find((run) => run.metadata?.[REQUEST] === id);
}

let begun = "";

/** Tells whether a thread is the one that this page began last. */
export const isJustBegun = (thread: string) => begun === thread;

/** Asks in a thread of its own, which has the request's id; sent again, it begins no second one. */
export async function begin(request: Request, { id, isRetry }: Sending): Promise<string>;
/** Gives an input to another graph in a thread of its own. */
export async function begin(input: Json, sending: Sending, of: { graph: string; title: string }): Promise<string>;
export async function begin(input: Request | Json, { id, isRetry }: Sending, of?: { graph: string; title: string }): Promise<string> {
  await threads.create(of ? { title: of.title, graph_id: of.graph } : { title: (input as Request).question.slice(0, 80) }, id);
  if (!(isRetry && (await acceptedRun(id, id)))) await runs.start(id, { input, metadata: { [REQUEST]: id }, ...(of && { assistant_id: of.graph }) });
  threadsChanged.value += 1;
  begun = id;
  return id;
}

export class Conversation {
  /** The graph that runs the thread. */
  readonly graph: Signal<string> = signal(SUPERVISOR);
  readonly values: Signal<Values | null> = signal(null);
  readonly interrupts: Signal<Interrupt[]> = signal([]);
  /** What readers think of its answers, by turn. */
  readonly feedback: Signal<{ [turn: string]: Feedback }> = signal({});
  readonly live: Signal<Live> = signal(idle);
  readonly run: Signal<Run | null> = signal(null);
  /** The newest run that is over. */
  readonly lastRun: Signal<Run | null> = signal(null);
  /** When the newest turn began. */
  readonly began: Signal<string | undefined> = signal(undefined);
  readonly connection: Signal<Connection> = signal("over");
  readonly error: Signal<string | null> = signal(null);
  /** Whether the last run was stopped, so that it can continue. */
  readonly stopped: Signal<boolean> = signal(false);
  readonly loading: Signal<boolean> = signal(true);
  /** Why the thread could not be read. */
  readonly unread: Signal<Error | null> = signal(null);
  /** Whether there is no such thread, or none that may be seen. */
  readonly isGone: Signal<boolean> = signal(false);
  private readonly closed = new AbortController();
  /** The thread's last change when it was read; none once a run wrote since. */
  private readAt: string | null = null;
  private following: AbortController | null = null;

  constructor(readonly thread: string) {
    void this.open();
  }

  /** Reads the thread, and follows the run that is under way. */
  async open() {
    try {
      const status = await this.read();
      await this.join();
      // The run that was under way has ended in between.
      if (status === "busy" && !this.run.value) await this.read();
      this.unread.value = null;
    } catch (error) {
      if (error instanceof ServerError && error.status === 404) this.isGone.value = true;
      else this.unread.value = error as Error;
    }
    this.loading.value = false;
  }

  /** Follows a run that somebody else began, such as another tab. */
  async join() {
    if (this.run.value || this.closed.signal.aborted) return;
    const list = await runs.list(this.thread);
    this.lastRun.value = list.find((run) => run.status !== "pending" && run.status !== "running") ?? null;
    this.began.value = list.find((run) => run.kwargs?.input)?.created_at;
    // The oldest: others wait for it.
    const active = list.filter((run) => run.status === "pending" || run.status === "running").at(-1);
    if (active && !this.run.value) this.watch(active);
  }

  /** How it stands now. */
  get status(): ThreadStatus {
    if (this.run.value) return "busy";
    if (this.error.value) return "error";
    return this.interrupts.value.length > 0 || this.stopped.value ? "interrupted" : "idle";
  }

  /** Looks whether the thread changed without this tab. */
  async look() {
    if (this.run.value || this.loading.value || this.closed.signal.aborted) return;
    if (this.unread.value) return this.open();
    const head = await threads.head(this.thread);
    if (head?.updated_at === this.readAt && head?.status !== "busy") return;
    await this.join();
    if (!this.run.value) await this.read();
  }

  /** Reads the thread, and returns how it stands. */
  private async read(): Promise<ThreadStatus | null> {
    const before = this.run.value;
    const thread = await threads.get(this.thread);
    // A run that began meanwhile knows more.
    if (this.closed.signal.aborted || this.run.value !== before) return null;
    const open = Object.values(thread.interrupts ?? {}).flat();
    // What did not change stays the same value, so that nothing is drawn again.
    if (this.readAt !== thread.updated_at) this.values.value = thread.values ?? null;
    this.readAt = thread.updated_at;
    this.graph.value = String(thread.metadata?.graph_id ?? SUPERVISOR);
    this.interrupts.value = open;
    this.feedback.value = feedbackOf(thread.metadata);
    this.error.value = thread.status === "error" ? describe(thread.error) : null;
    this.stopped.value = thread.status === "interrupted" && open.length === 0;
    return thread.status;
  }

  private watch(run: Run) {
    this.following?.abort();
    const following = new AbortController();
    this.following = following;
    this.closed.signal.addEventListener("abort", () => following.abort(), { once: true });
    this.run.value = run;
    this.readAt = null;
    this.live.value = idle;
    this.stopped.value = false;
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
        if (following.signal.aborted) return;
        // What ended a turn early stands in the thread itself.
        if (!endedEarly(this.values.value)) this.error.value ??= next.error;
        this.run.value = null;
        this.live.value = { ...idle, tasks: next.tasks, progress: next.progress, calls: next.calls };
        threadsChanged.value += 1;
        // Others may wait their turn.
        await this.join();
      })
      .catch((error: Error) => {
        complain(error);
        // So that the next look reads the thread again.
        this.run.value = null;
        this.live.value = idle;
      });
  }

  private async start(body: { [key: string]: unknown }) {
    this.error.value = null;
    const run = await runs.start(this.thread, { ...(isOwn(this.graph.value) && { assistant_id: this.graph.value }), ...body });
    if (body.input) this.began.value = run.created_at;
    threadsChanged.value += 1;
    this.watch(run);
  }

  /** Asks; at an older checkpoint this begins a branch there. A request that the server accepted before is followed, and not sent again. */
  async ask(request: Request | Json, { id, isRetry }: Sending, checkpoint?: Checkpoint | null) {
    const accepted = isRetry && (await acceptedRun(this.thread, id));
    if (accepted) return this.watch(accepted);
    await this.start({
      input: request,
      metadata: { [REQUEST]: id },
      ...(checkpoint && { checkpoint_id: checkpoint.checkpoint_id }),
    });
  }

  /** Runs on from a step once more: what came after it stays as another branch. */
  async branch(checkpoint: Checkpoint | null) {
    await this.start({ input: null, ...(checkpoint && { checkpoint_id: checkpoint.checkpoint_id }) });
  }

  /** Answers an open question; a stale one is refused with the reason, and the thread is read again. An answer that the server accepted before is not sent again. */
  async answer(interrupt: string, reply: Reply, isRetry = false) {
    try {
      const { run_id } = await approvals.answer(interrupt, reply);
      threadsChanged.value += 1;
      this.interrupts.value = this.interrupts.value.filter(({ id }) => id !== interrupt);
      this.watch(await runs.get(this.thread, run_id));
    } catch (error) {
      await this.look();
      if (!(isRetry && error instanceof ServerError && error.status === 409)) throw error;
    }
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
  return "The last run failed";
}
