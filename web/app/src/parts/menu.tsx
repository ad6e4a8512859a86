/** A few actions behind a button; a click elsewhere, Escape or a choice closes them. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Icon, type IconName } from "./icon.tsx";

interface Props {
  label: string;
  icon?: IconName;
  children: ComponentChildren;
}

/** Closes an opened `details` on a click elsewhere and on Escape. */
export function useClosing() {
  const box = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const click = (event: Event) => {
      if (box.current?.open && !box.current.contains(event.target as Node)) box.current.open = false;
    };
    const key = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || !box.current?.open) return;
      event.stopPropagation();
      box.current.open = false;
      box.current.querySelector("summary")?.focus();
    };
    addEventListener("pointerdown", click);
    // Before whatever is below it.
    addEventListener("keydown", key, true);
    return () => {
      removeEventListener("pointerdown", click);
      removeEventListener("keydown", key, true);
    };
  }, []);
  return box;
}

export function Menu({ label, icon = "more", children }: Props) {
  const box = useClosing();
  const chosen = (event: MouseEvent) => (event.target as Element).closest("a, button") && box.current && (box.current.open = false);
  return (
    <details class="menu" ref={box}>
      <summary aria-label={label} title={label}><Icon name={icon} /></summary>
      <div class="menu-items" onClick={chosen}>{children}</div>
    </details>
  );
}
