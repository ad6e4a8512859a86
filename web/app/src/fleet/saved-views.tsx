/** Saved views of the runs: filters under a name, and the columns that are shown; both stay in this browser. */

import { askText } from "../parts/confirm.tsx";
import { Icon } from "../parts/icon.tsx";
import { useClosing } from "../parts/menu.tsx";
import { useStored } from "../parts/stored.ts";
import { link } from "../router.ts";

const [VIEWS, COLUMNS] = ["perihelion-views-of-runs", "perihelion-columns-of-runs"];

/** Columns that can be left out. */
export const OPTIONAL = ["Agents", "Started", "Duration", "Tokens", "Cost", "User"] as const;
export type Column = (typeof OPTIONAL)[number];

type Views = { [name: string]: string };

/** Views as chips; the present filters can be saved as one. */
export function SavedViews({ query }: { query: string }) {
  const [views, put] = useStored<Views>(VIEWS, {});
  async function save() {
    const name = (await askText("Save this view", "Name", ""))?.trim();
    if (name) put({ ...views, [name]: query });
  }
  const isSaved = Object.values(views).includes(query);
  if (!query && Object.keys(views).length === 0) return null;
  return (
    <ul class="saved-views" aria-label="Saved views">
      {Object.entries(views).map(([name, of]) => (
        <li key={name} class="chip">
          <a href={`${link("runs")}?${of}`} aria-current={of === query ? "true" : undefined}>{name}</a>
          <button type="button" class="square" aria-label={`Delete the view ${name}`} onClick={() => put(Object.fromEntries(Object.entries(views).filter(([other]) => other !== name)))}><Icon name="close" /></button>
        </li>
      ))}
      {query && !isSaved && <li><button type="button" class="link small" onClick={() => void save()}>Save view</button></li>}
    </ul>
  );
}

/** The columns that are left out, and a menu to choose them. */
export function useColumns() {
  const [hidden, put] = useStored<Column[]>(COLUMNS, []);
  const toggle = (column: Column) => put(hidden.includes(column) ? hidden.filter((one) => one !== column) : [...hidden, column]);
  return { hidden, toggle };
}

export function ColumnsMenu({ hidden, toggle }: ReturnType<typeof useColumns>) {
  const box = useClosing();
  return (
    <details class="menu" ref={box}>
      <summary>Columns</summary>
      <div class="menu-items option-fields">
        {OPTIONAL.map((column) => <label key={column} class="choice"><input type="checkbox" checked={!hidden.includes(column)} onChange={() => toggle(column)} /> {column}</label>)}
      </div>
    </details>
  );
}
