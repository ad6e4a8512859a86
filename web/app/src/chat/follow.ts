/** Follows a run's events over lost connections, restarts of the server and tabs that sleep. */

import { ServerError } from "../api/http.ts";
import { events, type ServerEvent } from "../api/sse.ts";
import { runs } from "../api/threads.ts";
import { inTurn } from "./connections.ts";

/** Milliseconds between tries: the first few are quick, since a server restarts in seconds. */
const WAITS = [300, 600, 1_200, 2_500, 5_000];

/** Milliseconds without a byte after which a stream counts as lost; the server sends a heartbeat every 5 to 10 seconds. */
const SILENCE = 30_000;

/** Milliseconds without an event after which a tab without a connection of its own lets the next one look. */
const GLANCE = 250;

/** Milliseconds between two looks of a tab without a connection of its own. */
const BETWEEN = 300;

export type Connection = "live" | "lost" | "asleep" | "over";

interface Follower {
  event: (event: ServerEvent) => void;
  connection: (state: Connection) => void;
}

const isOver = (status: string) => status !== "pending" && status !== "running";

/**
 * Reads a run's events from its beginning until it ends.
 *
 * A hidden tab keeps no connection, since a browser has six for a server; the log is durable, so it reads on from
 * the last event when it is shown. Ends when the run has ended or `signal` is aborted.
 */
export async function follow(thread: string, run: string, graph: string, follower: Follower, signal: AbortSignal): Promise<void> {
  let last = "-1";
  let failures = 0;
  let over = false;

  /** Reads events until the stream ends, or until there are none for now where the tab holds no connection. */
  async function read(isHeld: boolean) {
    const stream = new AbortController();
    const stop = () => stream.abort();
    const hide = () => document.visibilityState === "hidden" && stream.abort();
    signal.addEventListener("abort", stop);
    document.addEventListener("visibilitychange", hide);
    const patience = isHeld ? SILENCE : GLANCE;
    let watchdog = setTimeout(stop, SILENCE);
    const heard = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(stop, patience);
    };
    let connected = false;
    try {
      const response = await runs.stream(thread, run, graph, last, stream.signal);
      connected = true;
      heard();
      follower.connection("live");
      for await (const event of events(response)) {
        heard();
        failures = 0;
        if (event.id) last = event.id;
        follower.event(event);
      }
      over = isOver((await runs.get(thread, run)).status);
    } catch (error) {
      if (error instanceof ServerError && error.status === 404) over = true;
      // The tab has read what there was, and lets the next one look.
      else if (connected && !isHeld && stream.signal.aborted) return;
      else if (!signal.aborted && document.visibilityState === "visible") follower.connection("lost");
    } finally {
      clearTimeout(watchdog);
      signal.removeEventListener("abort", stop);
      document.removeEventListener("visibilitychange", hide);
    }
    failures += 1;
  }

  while (!signal.aborted) {
    await untilVisible(follower, signal);
    await inTurn(read, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
    if (over) return follower.connection("over");
    if (document.visibilityState === "visible") await pause(WAITS[Math.min(failures, WAITS.length) - 1] ?? BETWEEN, signal);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), done()), { once: true });
  });
}

function untilVisible(follower: Follower, signal: AbortSignal): Promise<void> {
  if (document.visibilityState === "visible") return Promise.resolve();
  follower.connection("asleep");
  return new Promise((done) => {
    const look = () => {
      if (document.visibilityState !== "visible" && !signal.aborted) return;
      document.removeEventListener("visibilitychange", look);
      done();
    };
    document.addEventListener("visibilitychange", look);
    signal.addEventListener("abort", look, { once: true });
  });
}
