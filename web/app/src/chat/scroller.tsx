/** The messages, scrolled so that nothing jumps. */

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../parts/icon.tsx";

/** Pixels from the end within which a reader is at the end. */
const NEAR = 60;

/** Pixels above a question that stands at the top. */
const ABOVE = 16;

interface Props {
  children: ComponentChildren;
  /** Whether something is being written. */
  busy: boolean;
  /** How many questions wait for the reader. */
  asks: number;
  /** Id of the newest question. */
  newest: string | undefined;
  /** How often the reader asked here. */
  asked: number;
}

/**
 * Moves a new question to the top, so that its answer grows below; keeps the newest in sight for who is at the end, and
 * leaves the reader alone elsewhere.
 *
 * A thread that has ended opens at its last question, one that waits at what it asks.
 */
export function Scroller({ children, busy, asks, newest, asked }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  /** Room below the content, so that a question with a short answer can stand at the top. */
  const room = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const isAtTop = useRef(false);
  const seen = useRef<{ newest: string | undefined; asked: number }>({ newest: undefined, asked: 0 });
  const top = useRef(0);
  const [isAway, setAway] = useState(false);
  const toEnd = () => box.current && (box.current.scrollTop = box.current.scrollHeight);
  const lastQuestion = () => [...(content.current?.querySelectorAll(".message.user") ?? [])].at(-1);
  /** Gives the content as much room below as it needs, and tells whether its end is out of sight. */
  function fit() {
    if (!box.current || !content.current || !room.current) return;
    const end = content.current.getBoundingClientRect().bottom;
    const question = isAtTop.current ? lastQuestion() : undefined;
    const missing = question ? box.current.clientHeight - ABOVE - (end - question.getBoundingClientRect().top) : 0;
    room.current.style.height = `${Math.max(0, missing)}px`;
    setAway(!follows.current && end > box.current.getBoundingClientRect().bottom + NEAR);
  }
  useEffect(() => {
    if (!content.current) return;
    // A long answer is drawn bit by bit, and so grows long after its text came.
    const growth = new ResizeObserver(() => {
      fit();
      if (busy && follows.current) toEnd();
    });
    growth.observe(content.current);
    return () => growth.disconnect();
  }, [busy]);
  useLayoutEffect(() => {
    const isOwn = asked !== seen.current.asked;
    if (newest === seen.current.newest) return;
    seen.current = { newest, asked };
    if (!isOwn) return;
    isAtTop.current = true;
    follows.current = false;
    fit();
    lastQuestion()?.scrollIntoView({ block: "start" });
  }, [newest, asked]);
  useEffect(() => {
    if (asks > 0 && (follows.current || isAtTop.current)) [...(content.current?.querySelectorAll(".ask") ?? [])].at(-1)?.scrollIntoView({ block: "nearest" });
  }, [asks]);
  useEffect(() => {
    if (!busy && asks === 0) lastQuestion()?.scrollIntoView({ block: "start" });
  }, []);
  /** Only who scrolls back leaves the end: it moves away by itself whenever something is written. */
  function scrolled(event: { currentTarget: HTMLDivElement }) {
    const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
    const isNear = scrollHeight - scrollTop - clientHeight < NEAR;
    const hasRoom = (room.current?.clientHeight ?? 0) > 0;
    if (isNear && !hasRoom && (!isAtTop.current || scrollTop > top.current)) follows.current = true;
    else if (scrollTop < top.current) follows.current = false;
    top.current = scrollTop;
    fit();
  }
  function latest() {
    follows.current = true;
    isAtTop.current = false;
    fit();
    toEnd();
  }
  return (
    <div class="messages-box">
      <div class="messages" ref={box} tabIndex={0} role="log" aria-label="Messages" aria-busy={busy} onScroll={scrolled}>
        <div ref={content}>{children}</div>
        <div ref={room} aria-hidden="true" />
      </div>
      {isAway && busy && <button type="button" class="latest" onClick={latest}><Icon name="arrow-down" /> Latest</button>}
    </div>
  );
}
