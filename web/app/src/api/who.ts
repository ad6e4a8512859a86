/** Who asks: a session in a cookie, or a key that this tab keeps until it is closed. */

const KEY = "perihelion-key";

/** Returns the key that requests are sent with, if there is one. */
export function key(): string | null {
  return sessionStorage.getItem(KEY);
}

export function useKey(text: string | null) {
  if (text) sessionStorage.setItem(KEY, text);
  else sessionStorage.removeItem(KEY);
}

/** Returns the token that a session's writing requests carry, which other sites' pages cannot read. */
function csrf(): string | undefined {
  return /(?:^|;\s*)perihelion_csrf=([^;]*)/.exec(document.cookie)?.[1];
}

/** Tells whether a session is under way. */
export const hasSession = () => csrf() !== undefined;

/** Returns the headers that prove who asks. */
export function proof(method: string): { [header: string]: string } {
  const [given, token] = [key(), csrf()];
  return {
    ...(given && { "x-api-key": given }),
    ...(token && method !== "GET" && { "x-csrf-token": token }),
  };
}
