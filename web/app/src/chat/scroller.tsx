/** The messages, scrolled so that nothing jumps. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../parts/icon.tsx";

/** Pixels from the end within which a reader is at the end. */
const NEAR = 60;

interface Props {
  children: ComponentChildren;
  /** Whether something is being written. */
  busy: boolean;
  /** How many questions wait for the reader. */
  asks: number;
}

/**
 * Keeps the newest in sight while it is written and the reader is at the end, and leaves the reader alone elsewhere.
 *
 * A thread that has ended opens at its last question, one that waits at what it asks.
 */
export function Scroller({ children, busy, asks }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const top = useRef(0);
  const [isAway, setAway] = useState(false);
  const toEnd = () => box.current && (box.current.scrollTop = box.current.scrollHeight);
  useEffect(() => {
    if (!busy || !content.current) return;
    // A long answer is drawn bit by bit, and so grows long after its text came.
    const growth = new ResizeObserver(() => atEnd.current && toEnd());
    growth.observe(content.current);
    return () => growth.disconnect();
  }, [busy]);
  useEffect(() => {
    if (asks > 0 && atEnd.current) toEnd();
  }, [asks]);
  useEffect(() => {
    if (!busy && asks === 0) [...(box.current?.querySelectorAll(".message.user") ?? [])].at(-1)?.scrollIntoView({ block: "start" });
  }, []);
  /** Only who scrolls back leaves the end: it moves away by itself whenever something is written. */
  function scrolled(event: { currentTarget: HTMLDivElement }) {
    const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
    if (scrollHeight - scrollTop - clientHeight < NEAR) atEnd.current = true;
    else if (scrollTop < top.current) atEnd.current = false;
    top.current = scrollTop;
    setAway(!atEnd.current && busy);
  }
  function latest() {
    atEnd.current = true;
    setAway(false);
    toEnd();
  }
  return (
    <div class="messages-box">
      <div class="messages" ref={box} tabIndex={0} role="log" aria-label="Messages" aria-busy={busy} onScroll={scrolled}>
        <div ref={content}>{children}</div>
      </div>
      {isAway && busy && <button type="button" class="latest" onClick={latest}><Icon name="arrow-down" /> Latest</button>}
    </div>
  );
}
