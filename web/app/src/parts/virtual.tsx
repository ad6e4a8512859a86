/** A list that draws only the rows in sight, all of one height. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

interface Props {
  count: number;
  /** Pixels of a row. */
  height: number;
  row: (index: number) => ComponentChildren;
  label: string;
  class?: string;
  /** Whether it is the body of a table, whose rows say so themselves. */
  isTable?: boolean;
  /** Whether few rows make a short list. */
  fit?: boolean;
  /** Called when the last rows come in sight. */
  onEnd?: () => void;
}

const BEYOND = 10;

export function VirtualList({ count, height, row, label, class: name = "", isTable = false, fit, onEnd }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, size: 600 });
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const read = () => setView({ top: element.scrollTop, size: element.clientHeight });
    const observer = new ResizeObserver(read);
    observer.observe(element);
    element.addEventListener("scroll", read, { passive: true });
    read();
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", read);
    };
  }, []);
  const first = Math.max(0, Math.floor(view.top / height) - BEYOND);
  const last = Math.min(count, Math.ceil((view.top + view.size) / height) + BEYOND);
  useEffect(() => {
    if (last >= count) onEnd?.();
  }, [last, count]);
  const rows = [];
  for (let index = first; index < last; index += 1) {
    rows.push(
      <div class="virtual-row" role={isTable ? "presentation" : "listitem"} key={index} style={{ top: `${index * height}px`, height: `${height}px` }}>
        {row(index)}
      </div>,
    );
  }
  return (
    <div class={`virtual ${name}`} ref={box} role={isTable ? "rowgroup" : "list"} aria-label={label} tabIndex={0} {...(fit && { style: { height: `min(${count * height}px, 24rem, 60vh)` } })}>
      <div class="virtual-all" role="presentation" style={{ height: `${count * height}px` }}>
        {rows}
      </div>
    </div>
  );
}
