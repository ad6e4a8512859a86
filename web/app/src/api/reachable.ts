/** Whether the server answers: requests say so, and while it does not, it is asked again and again. */

import { signal } from "@preact/signals";

export const reachable = signal(true);

/** When the server answered last. */
export const lastReached = signal(new Date().toISOString());

/** Seconds until the next try; 0 while one is under way. */
export const nextTry = signal(0);

/** Seconds between tries. */
const WAITS = [1, 2, 3, 5, 8];

/** Statuses of a proxy that does not reach the server. */
export const GATEWAY = new Set([502, 503, 504]);

let answeredAt = Date.now();
let failures = 0;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Notes that a request came through. */
export function reached() {
  failures = 0;
  clearTimeout(timer);
  if (reachable.value) answeredAt = Date.now();
  reachable.value = true;
}

/** Notes that a request did not come through, and begins to ask. */
export function missed() {
  if (!reachable.value) return;
  lastReached.value = new Date(answeredAt).toISOString();
  reachable.value = false;
  wait();
}

function wait() {
  nextTry.value = WAITS[Math.min(failures, WAITS.length - 1)] ?? 1;
  failures += 1;
  clearTimeout(timer);
  timer = setTimeout(tick, 1_000);
}

function tick() {
  nextTry.value -= 1;
  if (nextTry.value > 0) timer = setTimeout(tick, 1_000);
  else void tryNow();
}

/** Asks the server now. */
export async function tryNow() {
  clearTimeout(timer);
  nextTry.value = 0;
  try {
    const { status } = await fetch("ok", { cache: "no-store" });
    if (GATEWAY.has(status)) wait();
    else reached();
  } catch {
    wait();
  }
}
