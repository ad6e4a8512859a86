/** Cuts Markdown into pieces that are parsed at a time, a long text bit by bit. */

interface Block {
  text: string;
  /** Where it begins in the text. */
  start: number;
}

/** Cuts Markdown into blocks at blank lines outside of code fences, lists and tables included whole. */
function blocks(text: string): Block[] {
  const found: Block[] = [];
  let block: string[] = [];
  let start = 0;
  let at = 0;
  let fence: string | null = null;
  for (const line of text.split("\n")) {
    const mayFence = line.includes("```") || line.includes("~~~");
    const mark = mayFence && /^\s{0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (mark && (!fence || mark.startsWith(fence))) fence = fence ? null : mark;
    const last = found[found.length - 1];
    if (line.trim() === "" && !fence) {
      if (block.length) found.push({ text: block.join("\n"), start });
      block = [];
    } else if (!fence && block.length === 0 && last && /^(\s{2,}|[-*+] |\d+[.)] )/.test(line) && isList(last.text)) {
      // A list with blank lines between its items stays one list.
      found.pop();
      start = last.start;
      block = [`${last.text}\n`, line];
    } else {
      if (block.length === 0) start = at;
      block.push(line);
    }
    at += line.length + 1;
  }
  if (block.length) found.push({ text: block.join("\n"), start });
  return found;
}

function isList(block: string): boolean {
  return ITEM.test(block);
}

/** Characters that are parsed at a time: few enough that a page of any length stays answering. */
const AT_ONCE = 1_000;

/** Joins blocks to pieces that are parsed at a time, and cuts what is longer than one. */
function pieces(blocks: Block[]): string[] {
  const found: string[] = [];
  for (const { text } of blocks) {
    const last = found[found.length - 1];
    if (last !== undefined && last.length + text.length < AT_ONCE) found[found.length - 1] = `${last}\n\n${text}`;
    else if (text.length <= AT_ONCE) found.push(text);
    else found.push(...cutLong(text));
  }
  return found;
}

/** Characters of prose that are never taken apart. */
const PROSE = 8_000;

/** Where a list may be cut: before an item of its own, not of a list within it. */
const ITEM = /^([-*+] |\d+[.)] )/;

/** Cuts a long block between lines; code stays code in each part, and a table has its header in each. */
function cutLong(block: string): string[] {
  const lines = block.split("\n");
  const fence = /^\s{0,3}(`{3,}|~{3,})/.exec(lines[0] ?? "")?.[1];
  if (fence !== undefined) {
    const isClosed = lines.length > 1 && (lines.at(-1) ?? "").trim().startsWith(fence);
    const code = lines.slice(1, isClosed ? -1 : undefined).flatMap((line) => slices(line, AT_ONCE));
    return joined(code, AT_ONCE).map((part) => `${lines[0]}\n${part}\n${fence}`);
  }
  if (/^[\s|:-]+$/.test(lines[1] ?? "") && (lines[1] ?? "").includes("-")) {
    const head = lines.slice(0, 2).join("\n");
    return joined(lines.slice(2), AT_ONCE).map((rows) => `${head}\n${rows}`);
  }
  if (isList(block)) {
    const items: string[] = [];
    for (const line of lines) {
      if (items.length === 0 || ITEM.test(line)) items.push(line);
      else items[items.length - 1] += `\n${line}`;
    }
    return joined(items, AT_ONCE);
  }
  // What stands out within a paragraph may begin on one line and end on another.
  return joined(lines.flatMap((line) => slices(line, PROSE)), PROSE);
}

/** Cuts a line that is longer than that between words, where it has any. */
function slices(line: string, most: number): string[] {
  const found: string[] = [];
  let rest = line;
  while (rest.length > most) {
    const space = rest.lastIndexOf(" ", most);
    const at = space > most / 2 ? space + 1 : most;
    found.push(rest.slice(0, at));
    rest = rest.slice(at);
  }
  return [...found, rest];
}

/** Joins lines to parts that are as long as that at most, if no line is longer. */
function joined(lines: string[], most: number): string[] {
  const found: string[] = [];
  let part: string[] = [];
  let size = 0;
  for (const line of lines) {
    if (part.length > 0 && size + line.length > most) {
      found.push(part.join("\n"));
      part = [];
      size = 0;
    }
    part.push(line);
    size += line.length + 1;
  }
  if (part.length > 0) found.push(part.join("\n"));
  return found;
}

/** Characters that are cut at a time. */
const WINDOW = 50_000;

/** A text that is cut bit by bit, and may grow at its end meanwhile. */
export class Cutter {
  private text = "";
  /** What is before this is cut for good, into `settled`. */
  private at = 0;
  private settled: string[] = [];
  private rest: string[] = [];
  private window = WINDOW;
  isThrough = true;

  /** Takes the text as it is now, and cuts its beginning, or what was added. */
  take(text: string) {
    if (text === this.text) return;
    let shown = this.settled.length + this.rest.length;
    if (!text.startsWith(this.text)) {
      shown = 0;
      this.at = 0;
      this.settled = [];
      this.window = WINDOW;
    }
    this.text = text;
    this.rest = [];
    // What was there stays there.
    do this.step();
    while (!this.isThrough && this.settled.length < shown - 1);
  }

  /** Cuts a bit more; the last block of it may continue, so that it is cut again with the next. */
  step() {
    const end = this.at + this.window;
    this.isThrough = end >= this.text.length;
    if (this.isThrough) {
      this.rest = pieces(blocks(this.text.slice(this.at)));
      return;
    }
    const found = blocks(this.text.slice(this.at, this.text.lastIndexOf("\n", end) + 1));
    const last = found.length > 1 ? found.pop() : undefined;
    if (last) {
      this.settled.push(...pieces(found));
      this.at += last.start;
      this.window = WINDOW;
    } else {
      // One block is longer than that.
      this.window *= 2;
    }
  }

  get pieces(): string[] {
    return [...this.settled, ...this.rest];
  }
}
