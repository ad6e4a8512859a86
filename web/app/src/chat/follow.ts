/** Follows a run's events over lost connections, restarts of the server and tabs that sleep. */

import { ServerError } from "../api/http.ts";
import { events, type ServerEvent } from "../api/sse.ts";
import { runs } from "../api/threads.ts";

/** Milliseconds between tries: the first few are quick, since a server restarts in seconds. */
const WAITS = [300, 600, 1_200, 2_500, 5_000];

/** Milliseconds without a byte after which a stream counts as lost; the server sends a heartbeat every 5 to 10 seconds. */
const SILENCE = 30_000;

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
export async function follow(thread: string, run: string, follower: Follower, signal: AbortSignal): Promise<void> {
  let last = "-1";
  let failures = 0;
  while (!signal.aborted) {
    await untilVisible(follower, signal);
    const stream = new AbortController();
    const stop = () => stream.abort();
    const hide = () => document.visibilityState === "hidden" && stream.abort();
    signal.addEventListener("abort", stop);
    document.addEventListener("visibilitychange", hide);
    let watchdog = setTimeout(stop, SILENCE);
    try {
      const response = await runs.stream(thread, run, last, stream.signal);
      follower.connection("live");
      for await (const event of events(response)) {
        clearTimeout(watchdog);
        watchdog = setTimeout(stop, SILENCE);
        failures = 0;
        if (event.id) last = event.id;
        follower.event(event);
      }
      if (isOver((await runs.get(thread, run)).status)) return follower.connection("over");
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ServerError && error.status === 404) return follower.connection("over");
    } finally {
      clearTimeout(watchdog);
      signal.removeEventListener("abort", stop);
      document.removeEventListener("visibilitychange", hide);
    }
    if (document.visibilityState === "visible") {
      follower.connection("lost");
      await pause(WAITS[Math.min(failures, WAITS.length - 1)] ?? 5_000, signal);
      failures += 1;
    }
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
