/**
 * Markdown of models and tools, rendered without HTML of theirs, images or scripts.
 *
 * An answer that streams is rendered piece by piece: only the piece that grows is parsed again.
 */

import { micromark } from "micromark";
import { gfm, gfmHtml } from "micromark-extension-gfm";
import { memo } from "preact/compat";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Cutter } from "./pieces.ts";
import { readable } from "./text.ts";

/** No pictures: `![…](…)` is a link, so that no picture of a stranger is ever fetched. */
const SYNTAX = [gfm(), { disable: { null: ["labelStartImage"] } }];
const SHAPES = [gfmHtml()];

/** Renders Markdown; with `cites`, numbers in brackets open their source. */
export function html(text: string, cites: boolean): string {
  // Markdown writes any letter by its number, so what it became is looked at as well.
  const shown = readable(micromark(readable(text), { extensions: SYNTAX, htmlExtensions: SHAPES }))
    .replace(/<a href="(https?:[^"]*)"/g, '<a target="_blank" rel="noopener noreferrer nofollow" href="$1"')
    // Any other address would leave the view for nowhere.
    .replace(/<a href="(?!mailto:|#\/)[^"]*"/g, "<a");
  return cites ? shown.replace(/\[(\d{1,3})\](?![^<]*<\/(?:a|code|pre)>)/g, '<a class="citation" href="#cite-$1" data-cite="$1">[$1]</a>') : shown;
}

/** Milliseconds of parsing between which the page answers. */
const SLICE = 8;

/** Renders the pieces of a text: a long one grows bit by bit, and only what changed is parsed again. */
class Growing {
  private readonly cutter = new Cutter();
  private readonly done: { text: string; html: string }[] = [];
  isWhole = false;

  constructor(private readonly cites: boolean) {}

  step(text: string) {
    const began = performance.now();
    this.cutter.take(text);
    if (this.done.length >= this.cutter.pieces.length && !this.cutter.isThrough) this.cutter.step();
    const parts = this.cutter.pieces;
    this.done.length = Math.min(this.done.length, parts.length);
    let parsed = 0;
    for (const [at, part] of parts.entries()) {
      if (this.done[at]?.text === part) continue;
      if (parsed > 0 && performance.now() - began > SLICE) {
        this.done.length = at;
        break;
      }
      this.done[at] = { text: part, html: html(part, this.cites) };
      parsed += 1;
    }
    this.isWhole = this.cutter.isThrough && this.done.length === parts.length;
  }

  get pieces(): string[] {
    return this.done.map((piece) => piece.html);
  }
}

function useGrowing(text: string, cites: boolean): string[] {
  const growing = useMemo(() => new Growing(cites), [cites]);
  const [turn, setTurn] = useState(0);
  const pieces = useMemo(() => {
    growing.step(text);
    return growing.pieces;
  }, [growing, text, turn]);
  useEffect(() => {
    if (growing.isWhole) return;
    const next = setTimeout(() => setTurn(turn + 1), 0);
    return () => clearTimeout(next);
  }, [growing, text, turn]);
  return pieces;
}

const Piece = memo(function Piece({ html }: { html: string }) {
  return <div class="piece" dangerouslySetInnerHTML={{ __html: html }} />;
});

interface Props {
  text: string;
  /** Opens the source with this number; without it, numbers in brackets are text. */
  onCite?: (number: number) => void;
}

export function Markdown({ text, onCite }: Props) {
  const pieces = useGrowing(text, onCite !== undefined);
  function click(event: MouseEvent) {
    const target = (event.target as Element).closest?.("[data-cite]");
    if (!target) return;
    event.preventDefault();
    onCite?.(Number(target.getAttribute("data-cite")));
  }
  return (
    <div class="markdown" onClick={click}>
      {pieces.map((piece, index) => (
        <Piece key={index} html={piece} />
      ))}
    </div>
  );
}
