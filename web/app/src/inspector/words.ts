/** The difference of two texts, word by word. */

export interface Part {
  kind: "same" | "old" | "new";
  text: string;
}

/** Words above which two texts are shown whole, one after the other. */
const MOST = 600;

/** Returns what stayed, went and came, in order. */
export function byWords(before: string, after: string): Part[] {
  const a = before.split(/(\s+)/);
  const b = after.split(/(\s+)/);
  if (a.length > MOST || b.length > MOST) return [{ kind: "old", text: before }, { kind: "same", text: " " }, { kind: "new", text: after }];
  // Lengths of the longest common parts of the ends.
  const longest = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  const at = (i: number, j: number) => longest[i]?.[j] ?? 0;
  for (let i = a.length - 1; i >= 0; i -= 1) {
    const row = longest[i];
    if (!row) continue;
    for (let j = b.length - 1; j >= 0; j -= 1) row[j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  }
  const parts: Part[] = [];
  const put = (kind: Part["kind"], text = "") => {
    const last = parts.at(-1);
    if (last?.kind === kind) last.text += text;
    else parts.push({ kind, text });
  };
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) (put("same", a[i]), i++, j++);
    else if (i < a.length && (j >= b.length || at(i + 1, j) >= at(i, j + 1))) put("old", a[i++]);
    else put("new", b[j++]);
  }
  return parts;
}
