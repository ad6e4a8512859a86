/** A modal dialog: focus stays inside, Escape closes, focus returns to where it was. */

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Icon } from "./icon.tsx";
import { Notices, dialogs } from "./notice.tsx";

interface Props {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  wide?: boolean;
  class?: string;
}

export function Dialog({ title, onClose, children, wide, class: look = "" }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [depth, setDepth] = useState(-1);
  useLayoutEffect(() => {
    const element = dialog.current;
    if (element && !element.open) element.showModal();
    dialogs.value += 1;
    setDepth(dialogs.value);
    return () => {
      dialogs.value -= 1;
      element?.close();
    };
  }, []);
  return (
    <dialog ref={dialog} class={`${wide ? "wide" : ""} ${look}`} aria-label={title} onClose={onClose}>
      <header class="dialog-head">
        <h2>{title}</h2>
        <button type="button" class="square" aria-label="Close" onClick={onClose}><Icon name="close" /></button>
      </header>
      {children}
      <Notices depth={depth} />
    </dialog>
  );
}
