/** What differs between two values, place by place. */

import { clip, readable } from "../parts/text.ts";
import type { Change } from "./difference.ts";

/** Places that are shown. */
const SHOWN = 100;

export function Changes({ changes }: { changes: Change[] }) {
  return (
    <>
      <table class="changes">
        <tbody>
          {changes.slice(0, SHOWN).map((change, index) => (
            <tr key={index}>
              <th scope="row">{readable(change.path) || "all of it"}</th>
              <td class="old">{"before" in change ? short(change.before) : "—"}</td>
              <td class="new">{"after" in change ? short(change.after) : "—"}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {changes.length > SHOWN && <p class="hint">{changes.length - SHOWN} more places differ.</p>}
    </>
  );
}

function short(value: unknown): string {
  return clip(readable(typeof value === "string" ? value : JSON.stringify(value)), 300);
}
