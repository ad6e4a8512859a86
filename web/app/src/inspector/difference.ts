/** The difference of two JSON values, as a list of places. */

export interface Change {
  path: string;
  before?: unknown;
  after?: unknown;
}

/** Changes that are listed. */
const MOST = 500;

/** Lists what differs, depth first; equal branches are skipped whole. */
export function difference(before: unknown, after: unknown, path = "", found: Change[] = []): Change[] {
  if (found.length >= MOST || Object.is(before, after)) return found;
  if (isBranch(before) && isBranch(after) && Array.isArray(before) === Array.isArray(after)) {
    const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
    for (const key of keys) {
      const inside = path ? `${path}.${key}` : key;
      const [old, now] = [(before as Fields)[key], (after as Fields)[key]];
      if (!(key in before)) found.push({ path: inside, after: now });
      else if (!(key in after)) found.push({ path: inside, before: old });
      else difference(old, now, inside, found);
    }
    return found;
  }
  found.push({ path, before, after });
  return found;
}

type Fields = { [key: string]: unknown };

function isBranch(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
