/** Addresses within the page: everything stands after `#`, so that the server serves one file. */

import { computed, signal } from "@preact/signals";

const hash = signal(location.hash);
addEventListener("hashchange", () => {
  hash.value = location.hash;
});

export interface Route {
  /** Parts of the path, decoded. */
  path: string[];
  query: URLSearchParams;
}

export const route = computed<Route>(() => {
  const [path = "", query = ""] = hash.value.replace(/^#\/?/, "").split("?", 2);
  return { path: path.split("/").filter(Boolean).map(decode), query: new URLSearchParams(query) };
});

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Returns the address of a view. */
export function link(...path: string[]): string {
  return `#/${path.map(encodeURIComponent).join("/")}`;
}

/** Changes what follows the path of the address, without a step in the history; nothing leaves a name out. */
export function putQuery(changes: { [name: string]: string | null | undefined }) {
  // Another view is about to open.
  if (location.hash !== hash.value) return;
  const [path = ""] = hash.value.split("?", 1);
  const query = new URLSearchParams(route.value.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const next = `${path || "#/"}${query.size ? `?${query}` : ""}`;
  if (`${query}` !== `${route.value.query}`) history.replaceState(null, "", next);
  hash.value = location.hash;
}

export function go(...path: string[]) {
  location.hash = link(...path);
}
