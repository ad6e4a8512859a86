/** The panel beside the conversation: a column on wide screens, over it on others, a sheet from below on phones. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../parts/icon.tsx";
import { dialogs } from "../parts/notice.tsx";

/** From this width on the panel has room beside the conversation. */
const WIDE = "(min-width: 1400px)";

/** Tells whether the panel has room beside the conversation. */
export function useWide(): boolean {
  const [isWide, setWide] = useState(() => matchMedia(WIDE).matches);
  useEffect(() => {
    const query = matchMedia(WIDE);
    const changed = () => setWide(query.matches);
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, []);
  return isWide;
}

export function Panel({ title, onClose, children }: { title: string; onClose: () => void; children: ComponentChildren }) {
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    if (!matchMedia(WIDE).matches) box.current?.focus();
    // A dialog or menu above it closes first.
    const key = (event: KeyboardEvent) => event.key === "Escape" && dialogs.value === 0 && onClose();
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, [title]);
  return (
    <aside class="panel" ref={box} tabIndex={-1} aria-label={title}>
      <header class="dialog-head">
        <h2>{title}</h2>
        <button type="button" class="square" aria-label="Close the panel" onClick={onClose}><Icon name="close" /></button>
      </header>
      <div class="panel-body">{children}</div>
    </aside>
  );
}
