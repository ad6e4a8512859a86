/** A modal dialog: focus stays inside, Escape closes, focus returns to where it was. */

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { confirmed } from "./confirm.tsx";
import { Icon } from "./icon.tsx";
import { Notices, dialogs } from "./notice.tsx";

interface Props {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  wide?: boolean;
  /** Whether something is written that would be lost: the reader is asked first. */
  unsaved?: boolean;
  class?: string;
}

export function Dialog({ title, onClose, children, wide, unsaved, class: look = "" }: Props) {
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
  async function leave(event: Event) {
    if (!unsaved) return onClose();
    event.preventDefault();
    if (await confirmed("Discard what you wrote?", "Discard")) onClose();
  }
  /** Browsers close a dialog on a second Escape, whatever it says to that. */
  function closed(event: Event) {
    if (!dialog.current || dialog.current.open) return;
    if (unsaved) dialog.current.showModal();
    void leave(event);
  }
  return (
    <dialog ref={dialog} class={`${wide ? "wide" : ""} ${look}`} aria-label={title} onCancel={(event) => event.target === dialog.current && void leave(event)} onClose={closed}>
      <header class="dialog-head">
        <h2>{title}</h2>
        <button type="button" class="square" aria-label="Close" onClick={(event) => void leave(event)}><Icon name="close" /></button>
      </header>
      {children}
      <Notices depth={depth} />
    </dialog>
  );
}
