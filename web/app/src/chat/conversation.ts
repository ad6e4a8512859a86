/** One open thread: what it holds, the run under way, and what can be done with it. */

import { signal, type Signal } from "@preact/signals";
import { approvals, type Reply } from "../api/approvals.ts";
import { SUPERVISOR, isOwn } from "../api/graphs.ts";
import { ServerError } from "../api/http.ts";
import { runs, threads } from "../api/threads.ts";
import type { Interrupt, Json, Run, Thread, ThreadState, ThreadStatus, Values } from "../api/types.ts";
import { complain } from "../parts/notice.tsx";
import { threadsChanged } from "./changed.ts";
import { feedbackOf, type Feedback } from "./feedback.tsx";
import { isUnnamed, withQuestion } from "./folding.ts";
import { follow, type Connection } from "./follow.ts";
import { after, basedOn, idle, type Live } from "./live.ts";
import { endedEarly, from, type Arrival } from "./turns.ts";

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

/** Runs of a turn that are looked through for its first one: each answer to a question is a run. */
const RUNS = 200;

/** Returns the run that a request began, if the server accepted it. */
async function acceptedRun(thread: string, id: string): Promise<Run | undefined> {
  return (await runs.list(thread)).find((run) => run.metadata?.[REQUEST] === id);
}

const hasInput = (run: Run) => Boolean(run.kwargs?.input);

/** Returns the question that a run answers; none where it has an input. */
const answerOf = (run: Run) => run.kwargs?.command?.resume;

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
  /** Questions that were answered here and whose runs may not have begun. */
  private readonly answered = new Set<string | undefined>();

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
    const newest = await runs.list(this.thread);
    const list = newest.length === 0 || newest.some(hasInput) ? newest : await runs.list(this.thread, RUNS);
    this.began.value = list.find(hasInput)?.created_at;
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
    const now = await threads.status(this.thread);
    if (now?.updated_at === this.readAt && now?.status !== "busy") return;
    await this.join();
    if (!this.run.value) await this.read();
  }

  /** Reads the thread, without its state where that is known, and returns how it stands. */
  private async read(values?: Values | null): Promise<ThreadStatus | null> {
    const before = this.run.value;
    const thread: Thread | Omit<Thread, "values"> = (values && (await threads.status(this.thread))) || (await threads.get(this.thread));
    // A run that began meanwhile knows more.
    if (this.closed.signal.aborted || this.run.value !== before) return null;
    const open = Object.values(thread.interrupts ?? {}).flat().filter(({ id }) => !this.answered.has(id));
    // What did not change stays the same value, so that nothing is drawn again.
    if ("values" in thread && this.readAt !== thread.updated_at) this.values.value = thread.values ?? null;
    this.readAt = thread.updated_at;
    this.graph.value = String(thread.metadata?.graph_id ?? SUPERVISOR);
    this.interrupts.value = open;
    this.feedback.value = feedbackOf(thread.metadata);
    this.error.value = thread.status === "error" ? describe(thread.error) : null;
    this.stopped.value = thread.status === "interrupted" && open.length === 0;
    return thread.status;
  }

  /** Follows a run; a state that is not known is read once the run has changed it. */
  private watch(run: Run, base: Values | null = null) {
    this.following?.abort();
    const following = new AbortController();
    this.following = following;
    this.closed.signal.addEventListener("abort", () => following.abort(), { once: true });
    this.run.value = run;
    this.readAt = null;
    this.stopped.value = false;
    // Events of one frame are drawn once.
    const isFolded = !isOwn(this.graph.value);
    let next: Live = { ...idle, ...(isFolded && { values: base, updates: [] }), interrupts: this.besides(run) };
    let drawing = 0;
    let isReading = false;
    const draw = () => {
      drawing = 0;
      if (following.signal.aborted) return;
      this.live.value = next;
      if (next.values) this.values.value = next.values;
      this.interrupts.value = next.interrupts.filter(({ id }) => !this.answered.has(id));
    };
    draw();
    const changed = (now: Live) => {
      next = now;
      drawing ||= requestAnimationFrame(draw);
      if (!next.updates?.length || next.values || isReading) return;
      isReading = true;
      const read = threads.get(this.thread).then(({ values }) => values && changed(basedOn(next, values)));
      // At the end of the run it is read again.
      void read.catch(() => {}).finally(() => (isReading = false));
    };
    const follower = {
      event: (event: Parameters<typeof after>[1]) => changed(after(next, event)),
      connection: (state: Connection) => {
        this.connection.value = state;
      },
    };
    follow(this.thread, run.run_id, this.graph.value, follower, following.signal)
      .then(async () => {
        if (following.signal.aborted) return;
        cancelAnimationFrame(drawing);
        draw();
        this.answered.delete(answerOf(run));
        await this.read(isFolded && next.values && !isUnnamed(next.values) ? next.values : null);
        if (following.signal.aborted) return;
        // What ended a turn early stands in the thread itself.
        if (!endedEarly(this.values.value)) this.error.value ??= next.error;
        this.run.value = null;
        this.live.value = { ...idle, tasks: next.tasks, progress: next.progress, calls: next.calls };
        threadsChanged.value += 1;
        // Others may wait their turn.
        await this.join();
        if (!this.run.value) this.answered.clear();
      })
      .catch((error: Error) => {
        complain(error);
        // So that the next look reads the thread again.
        this.run.value = null;
        this.live.value = idle;
      });
  }

  /** Returns the open questions that a run leaves open. */
  private besides(run: Run): Interrupt[] {
    const answered = answerOf(run);
    const isAnswer = this.answered.has(answered) || this.interrupts.value.some(({ id }) => id === answered);
    return isAnswer ? this.interrupts.value.filter(({ id }) => id !== answered) : [];
  }

  /** Starts a run that continues from a state. */
  private async start(body: { [key: string]: unknown }, base: Values | null) {
    this.error.value = null;
    const run = await runs.start(this.thread, { ...(isOwn(this.graph.value) && { assistant_id: this.graph.value }), ...body });
    if (body.input) this.began.value = run.created_at;
    threadsChanged.value += 1;
    this.watch(run, base);
  }

  /** Asks; after an older state this begins a branch there. A request that the server accepted before is followed, and not sent again. */
  async ask(request: Request | Json, { id, isRetry }: Sending, before?: ThreadState | null) {
    const accepted = isRetry && (await acceptedRun(this.thread, id));
    if (accepted) return this.watch(accepted);
    const base = withQuestion(before?.values ?? this.values.value ?? {}, (request as Request).question);
    await this.start({ input: request, metadata: { [REQUEST]: id }, ...from(before) }, base);
  }

  /** Runs on from where a question came in once more: what came after it stays as another branch. */
  async branch({ before, at }: Arrival, question: string) {
    await this.start({ input: null, ...from(at) }, withQuestion(before?.values ?? {}, question));
  }

  /** Answers an open question; a stale one is refused with the reason, and the thread is read again. An answer that the server accepted before is not sent again. */
  async answer(interrupt: string, reply: Reply, isRetry = false) {
    try {
      const { run_id } = await approvals.answer(interrupt, reply);
      threadsChanged.value += 1;
      // With another question open, somebody else's answer to it may have changed the thread.
      const base = this.interrupts.value.length === 1 ? this.values.value : null;
      this.answered.add(interrupt);
      this.interrupts.value = this.interrupts.value.filter(({ id }) => id !== interrupt);
      const run = await runs.get(this.thread, run_id);
      // A second answer waits for the run of the first.
      if (!this.run.value) this.watch(run, base);
    } catch (error) {
      await this.look();
      if (!(isRetry && error instanceof ServerError && error.status === 409)) throw error;
    }
  }

  /** Continues a run that failed or was stopped. */
  async resume() {
    await this.start({ input: null }, this.values.value);
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
