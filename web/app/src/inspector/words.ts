/** The difference of two texts, word by word. */

export interface Part {
  kind: "same" | "old" | "new";
  text: string;
}

/** Words above which what differs is shown whole, one text after the other. */
const MOST = 600;

/** The share that two texts have in common at least, to be compared word by word. */
const LEAST = 0.4;

/** Characters of a part that stayed; the middle of a longer one is left out. */
const KEPT = 160;

/** Returns what stayed, went and came, in order. */
export function byWords(before: string, after: string): Part[] {
  const [a, b] = [before.split(/(\s+)/), after.split(/(\s+)/)];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const middle = between(a.slice(start, a.length - end), b.slice(start, b.length - end));
  const kept = middle.reduce((sum, part) => sum + (part.kind === "same" ? part.text.trim().length : 0), 0) + a.slice(0, start).join("").length + a.slice(a.length - end).join("").length;
  // Texts that have little in common are read one after the other.
  if (kept < LEAST * Math.max(before.length, after.length)) return [{ kind: "old", text: before }, { kind: "same", text: "\n" }, { kind: "new", text: after }];
  const parts: Part[] = [{ kind: "same", text: a.slice(0, start).join("") }, ...middle, { kind: "same", text: a.slice(a.length - end).join("") }];
  return parts.filter((part) => part.text).map((part) => (part.kind === "same" ? { ...part, text: shortened(part.text) } : part));
}

function shortened(text: string): string {
  return text.length <= KEPT ? text : `${text.slice(0, KEPT / 2)} … ${text.slice(-KEPT / 2)}`;
}

/** Compares words that have neither beginning nor end in common, by their longest common part. */
function between(a: string[], b: string[]): Part[] {
  if (a.length > MOST || b.length > MOST) return [{ kind: "old", text: a.join("") }, { kind: "new", text: b.join("") }];
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
    if (i < a.length && j < b.length && a[i] === b[j]) {
      put("same", a[i]);
      i += 1;
      j += 1;
    } else if (i < a.length && (j >= b.length || at(i + 1, j) >= at(i, j + 1))) {
      put("old", a[i]);
      i += 1;
    } else {
      put("new", b[j]);
      j += 1;
    }
  }
  return parts;
}
