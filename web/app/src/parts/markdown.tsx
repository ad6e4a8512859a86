/**
 * Markdown of models and tools, rendered without HTML of theirs, images or scripts.
 *
 * An answer that streams is rendered piece by piece: only the piece that grows is parsed again.
 */

import { micromark } from "micromark";
import { gfm, gfmHtml } from "micromark-extension-gfm";
import { memo } from "preact/compat";
import { useEffect, useMemo, useState } from "preact/hooks";
import { legible } from "./text.ts";

/** Cuts Markdown into blocks at blank lines outside of code fences, lists and tables included whole. */
export function blocks(text: string): string[] {
  const found: string[] = [];
  let block: string[] = [];
  let fence: string | null = null;
  for (const line of text.split("\n")) {
    const mayFence = line.includes("```") || line.includes("~~~");
    const mark = mayFence && /^\s{0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (mark && (!fence || mark.startsWith(fence))) fence = fence ? null : mark;
    if (line.trim() === "" && !fence) {
      if (block.length) found.push(block.join("\n"));
      block = [];
    } else if (!fence && block.length === 0 && /^(\s{2,}|[-*+] |\d+[.)] )/.test(line) && found.length && isList(found[found.length - 1])) {
      // A list with blank lines between its items stays one list.
      block = [`${found.pop()}\n`, line];
    } else {
      block.push(line);
    }
  }
  if (block.length) found.push(block.join("\n"));
  return found;
}

function isList(block: string | undefined): boolean {
  return /^([-*+] |\d+[.)] )/.test(block ?? "");
}

/** Renders Markdown; `![…](…)` becomes a link, so that no picture of a stranger is ever fetched. */
export function html(text: string): string {
  const withoutImages = legible(text).replace(/!\[/g, "[");
  return micromark(withoutImages, { extensions: [gfm()], htmlExtensions: [gfmHtml()] })
    .replace(/<a href="(https?:[^"]*)"/g, '<a target="_blank" rel="noopener noreferrer nofollow" href="$1"')
    .replace(/\[(\d{1,3})\](?![^<]*<\/(?:a|code|pre)>)/g, '<a class="citation" href="#cite-$1" data-cite="$1">[$1]</a>');
}

/** Characters that are parsed at a time: few enough that a page of any length stays answering. */
const AT_ONCE = 2_000;

/** Joins blocks to pieces that are parsed at a time, and cuts what is longer than one. */
export function pieces(text: string): string[] {
  const found: string[] = [];
  for (const block of blocks(text)) {
    const last = found[found.length - 1];
    if (last !== undefined && last.length + block.length < AT_ONCE) found[found.length - 1] = `${last}\n\n${block}`;
    else if (block.length <= AT_ONCE) found.push(block);
    else found.push(...cutLong(block));
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

/** Lets a long text grow by a piece at a time, between which the page answers. */
function useGrowing(length: number): number {
  const [shown, setShown] = useState(1);
  useEffect(() => {
    if (shown >= length) return;
    const next = setTimeout(() => setShown(shown + 1), 0);
    return () => clearTimeout(next);
  }, [shown, length]);
  return shown;
}

/** Characters of which the first view of a text is made; what is longer is cut once that is there. */
const AT_FIRST = 50_000;

function usePieces(text: string): string[] {
  const [whole, setWhole] = useState(text.length <= AT_FIRST);
  useEffect(() => {
    if (whole) return;
    const next = setTimeout(() => setWhole(true), 0);
    return () => clearTimeout(next);
  }, []);
  return useMemo(() => pieces(whole ? text : text.slice(0, Math.max(text.lastIndexOf("\n\n", AT_FIRST), 0))), [text, whole]);
}

const Block = memo(function Block({ text }: { text: string }) {
  return <div class="piece" dangerouslySetInnerHTML={{ __html: html(text) }} />;
});

interface Props {
  text: string;
  /** Opens the source with this number. */
  onCite?: (number: number) => void;
}

export function Markdown({ text, onCite }: Props) {
  const parts = usePieces(text);
  const shown = useGrowing(parts.length);
  function click(event: MouseEvent) {
    const target = (event.target as Element).closest?.("[data-cite]");
    if (!target) return;
    event.preventDefault();
    onCite?.(Number(target.getAttribute("data-cite")));
  }
  return (
    <div class="markdown" onClick={click}>
      {parts.slice(0, shown).map((part, index) => (
        <Block key={index} text={part} />
      ))}
    </div>
  );
}
