/** Requests to the server: JSON in and out, failures as one kind of error with the server's own words. */

import { GATEWAY, missed, reached } from "./reachable.ts";
import { keepTime } from "../parts/clock.ts";
import { proof } from "./who.ts";

export class ServerError extends Error {
  constructor(
    message: string,
    /** The HTTP status; 0 where no answer came. */
    readonly status: number,
  ) {
    super(message);
  }
}

/** What is said where no answer came. */
export const UNREACHABLE = "Can't reach Perihelion";

/** Tells whether an answer comes from a proxy, and not from the server, whose answers are JSON. */
const isOfProxy = (response: Response) => GATEWAY.has(response.status) && !response.headers.get("content-type")?.includes("json");

/** Called when the server wants a login. */
export const unauthorized = { notify: () => {} };

/** Returns what the server says went wrong. */
export function words(body: unknown, status: number): string {
  if (typeof body === "object" && body !== null) {
    const { detail, message, error } = body as Record<string, unknown>;
    for (const text of [detail, message, error]) {
      if (typeof text === "string") return text;
      if (text !== undefined && text !== null) return JSON.stringify(text);
    }
  }
  if (typeof body === "string" && body.trim()) return body.trim().slice(0, 500);
  return `the server answered with status ${status}`;
}

/** Sends a request and returns the response once it is known to be a success. */
export async function send(path: string, init: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    const headers = { ...proof(init.method ?? "GET"), ...init.headers };
    response = await fetch(path, { credentials: "same-origin", ...init, headers });
  } catch (cause) {
    if (init.signal?.aborted) throw cause;
    missed();
    throw new ServerError(UNREACHABLE, 0);
  }
  if (isOfProxy(response)) {
    missed();
    throw new ServerError(UNREACHABLE, 0);
  }
  reached();
  keepTime(response.headers.get("date"));
  if (response.ok) return response;
  if (response.status === 401) unauthorized.notify();
  const text = await response.text().catch(() => "");
  let body: unknown = text;
  try {
    body = JSON.parse(text);
  } catch {
    // The words of a proxy, say, are shown as they are.
  }
  throw new ServerError(words(body, response.status), response.status);
}

/** Sends JSON, or nothing, and reads JSON; an empty answer is null. */
export async function json<T>(path: string, body?: unknown, method?: string, signal?: AbortSignal): Promise<T> {
  const init: RequestInit = { method: method ?? (body === undefined ? "GET" : "POST") };
  if (signal) init.signal = signal;
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { "content-type": "application/json" };
  }
  const response = await send(path, init);
  const text = await response.text();
  return (text ? JSON.parse(text) : null) as T;
}
