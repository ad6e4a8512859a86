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
  return /^([-*+] |\d+[.)] )/.test(block);
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

/** Cuts a long block between lines; code stays code in each part, and a table has its header in each. */
function cutLong(block: string): string[] {
  const lines = block.split("\n");
  const fence = /^\s{0,3}(`{3,}|~{3,})/.exec(lines[0] ?? "")?.[1];
  const isTable = /^[\s|:-]+$/.test(lines[1] ?? "") && (lines[1] ?? "").includes("-");
  const head = fence ? lines.slice(0, 1) : isTable ? lines.slice(0, 2) : [];
  const isClosed = fence !== undefined && lines.length > 1 && (lines.at(-1) ?? "").trim().startsWith(fence);
  const body = lines.slice(head.length, isClosed ? -1 : undefined);
  const found: string[] = [];
  let part: string[] = [];
  let size = 0;
  const end = () => {
    if (part.length) found.push([...head, ...part, ...(fence ? [fence] : [])].join("\n"));
    part = [];
    size = 0;
  };
  for (const line of body) {
    for (let from = 0; from === 0 || from < line.length; from += AT_ONCE) {
      const slice = line.slice(from, from + AT_ONCE);
      if (size + slice.length > AT_ONCE) end();
      part.push(slice);
      size += slice.length + 1;
    }
  }
  end();
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

  /** Cuts a bit more; the last block of it may go on, so that it is cut again with the next. */
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
