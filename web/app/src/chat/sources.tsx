/** The sources of an answer: a line each, a card when a reader points at a number, all of one in the panel. */

import { useEffect, useRef, useState } from "preact/hooks";
import { calledTool } from "../data/tool-titles.ts";
import { Icon } from "../parts/icon.tsx";
import { Markdown } from "../parts/markdown.tsx";
import { CopyButton } from "../parts/copy.tsx";
import { agentName, clip, readable } from "../parts/text.ts";
import { plural } from "../parts/time.tsx";
import { Values } from "../parts/values.tsx";
import { mainArgument } from "./calls.ts";
import { laidOut, type Cited, type Quote } from "./cited.ts";

interface ListProps {
  sources: Cited[];
  opened: number | null;
  onOpen: (number: number) => void;
}

/** Returns what a source is called: what is quoted, or else what was called. */
function titleOf({ title, calls }: Cited): string {
  return title || clip([...new Set(calls.map(({ tool, args }) => [calledTool(tool), mainArgument(args)].filter(Boolean).join(" ")))].join(", "), 100);
}

export function SourceLines({ sources, opened, onOpen }: ListProps) {
  if (sources.length === 0) return null;
  return (
    <section class="sources" aria-label="Sources">
      <h2 class="small hint">Sources</h2>
      <ol>
        {sources.map((source) => (
          <li key={source.number} value={source.number}>
            <button type="button" class="source-line" aria-pressed={opened === source.number} onClick={() => onOpen(source.number)}>
              <span class="source-number">{source.number}</span>
              <Icon name={source.quotes[0]?.isQuery ? "database" : source.quotes[0] ? "file" : "wrench"} />
              <strong>{readable(agentName(source.agent))}</strong>
              <span class="ellipsis hint source-words">{readable(titleOf(source))}{source.quotes[0] && !source.quotes[0].isQuery ? `: “${readable(clip(source.quotes[0].text.replace(/\s+/g, " "), 120))}”` : ""}</span>
              {source.times > 0 && <span class="hint small num">{plural(source.times, "citation")}</span>}
            </button>
          </li>
        ))}
      </ol>
    </section>
  );
}

/** All that is known of one source, at its quote or query. */
export function SourceCard({ source }: { source: Cited }) {
  return (
    <div class="source-card">
      <p><span class="source-number">{source.number}</span> <strong>{readable(agentName(source.agent))}</strong></p>
      {source.quotes.map((quote, index) => <QuoteView key={index} quote={quote} />)}
      {source.quotes.length === 0 && source.output && <blockquote><Markdown text={source.output} /></blockquote>}
      {source.calls.length > 0 && (
        <details open={source.quotes.length === 0}>
          <summary>{plural(source.calls.length, "call")}</summary>
          {source.calls.map((call, index) => (
            <details key={index} class="call" open={source.calls.length === 1}>
              <summary><Icon name="wrench" /> <span title={call.tool}>{readable(calledTool(call.tool))}</span></summary>
              <p class="hint small"><code>{readable(call.tool)}</code></p>
              <Values value={call.args} title="Arguments" />
            </details>
          ))}
        </details>
      )}
    </div>
  );
}

function QuoteView({ quote }: { quote: Quote }) {
  return (
    <section class="quote">
      <p class="values-head"><strong>{readable(quote.title)}</strong> {quote.address && <a href={quote.address}>Open at the quote</a>} <CopyButton text={quote.text} /></p>
      {quote.isQuery ? <pre tabIndex={0}><code>{readable(laidOut(quote.text))}</code></pre> : <blockquote>{readable(quote.text)}</blockquote>}
    </section>
  );
}

/** A card beside a number in the answer, while a reader points at it or has it focused. */
export function CitationHover({ sources }: { sources: Cited[] }) {
  const card = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState<{ number: number; left: number; top: number } | null>(null);
  useEffect(() => {
    const box = card.current?.parentElement;
    if (!box) return;
    const show = (event: Event) => {
      const link = (event.target as Element).closest?.("[data-cite]");
      if (!link) return setAt(null);
      const place = link.getBoundingClientRect();
      const around = box.getBoundingClientRect();
      setAt({ number: Number(link.getAttribute("data-cite")), left: Math.max(0, Math.min(place.left - around.left, around.width - 340)), top: place.bottom - around.top + 4 });
    };
    const hide = () => setAt(null);
    box.addEventListener("mouseover", show);
    box.addEventListener("focusin", show);
    box.addEventListener("mouseleave", hide);
    box.addEventListener("focusout", hide);
    return () => {
      box.removeEventListener("mouseover", show);
      box.removeEventListener("focusin", show);
      box.removeEventListener("mouseleave", hide);
      box.removeEventListener("focusout", hide);
    };
  }, []);
  const source = at && sources.find((one) => one.number === at.number);
  const quote = source?.quotes[0];
  return (
    <div ref={card} class="citation-hover" aria-hidden="true" {...(source && at ? { style: { left: `${at.left}px`, top: `${at.top}px` } } : { hidden: true })}>
      {source && <><strong>{readable(titleOf(source))}</strong> <span class="hint">{readable(agentName(source.agent))}</span><p>{readable(clip((quote?.text ?? source.output).replace(/\s+/g, " "), 240))}</p></>}
    </div>
  );
}
