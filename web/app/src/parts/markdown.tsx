/**
 * Markdown of models and tools, rendered without HTML of theirs, images or scripts.
 *
 * An answer that streams is rendered block by block: only the block that grows is parsed again.
 */

import { micromark } from "micromark";
import { gfm, gfmHtml } from "micromark-extension-gfm";
import { memo } from "preact/compat";
import { useMemo } from "preact/hooks";
import { legible } from "./text.ts";

/** Cuts Markdown into blocks at blank lines outside of code fences, lists and tables included whole. */
export function blocks(text: string): string[] {
  const found: string[] = [];
  let block: string[] = [];
  let fence: string | null = null;
  for (const line of text.split("\n")) {
    const mark = /^\s{0,3}(`{3,}|~{3,})/.exec(line)?.[1];
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

const Block = memo(function Block({ text }: { text: string }) {
  return <div dangerouslySetInnerHTML={{ __html: html(text) }} />;
});

interface Props {
  text: string;
  /** Opens the source with this number. */
  onCite?: (number: number) => void;
}

export function Markdown({ text, onCite }: Props) {
  const parts = useMemo(() => blocks(text), [text]);
  function click(event: MouseEvent) {
    const target = (event.target as Element).closest?.("[data-cite]");
    if (!target) return;
    event.preventDefault();
    onCite?.(Number(target.getAttribute("data-cite")));
  }
  return (
    <div class="markdown" onClick={click}>
      {parts.map((part, index) => (
        <Block key={index} text={part} />
      ))}
    </div>
  );
}
