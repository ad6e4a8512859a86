/** A list as a table, which scrolls within itself where the window is narrow. */

import type { ComponentChildren } from "preact";

interface Props {
  label: string;
  /** Titles of the columns; a number's stands at its right, a hidden one is only read out. */
  heads: { [title: string]: "" | "number" | "hidden" };
  class?: string;
  children: ComponentChildren;
}

export function ListTable({ label, heads, class: look = "", children }: Props) {
  const head = ([title, kind]: [string, string]) => <th key={title} class={kind === "number" ? "number" : ""}>{kind === "hidden" ? <span class="hidden">{title}</span> : title}</th>;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <table class={`list-table ${look}`}>
        <thead><tr>{Object.entries(heads).map(head)}</tr></thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
