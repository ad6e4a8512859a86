/** Skills and memories. */

import { useState } from "preact/hooks";
import { json } from "../api/http.ts";
import { useLater } from "../parts/later.ts";
import { useLoad } from "../parts/load.ts";
import { attempt } from "../parts/notice.tsx";
import { agentName, readable } from "../parts/text.ts";
import { moment } from "../parts/time.tsx";
import { link } from "../router.ts";
import { number, text } from "./fields.ts";
import { Records } from "./records.tsx";

export function SkillsView() {
  return (
    <Records
      title="Skills"
      path="v1/skills"
      key_="skills"
      id={(row) => text(row.id)}
      name={(row) => text(row.task)}
      about={(row) => [agentName(text(row.agent)), `succeeded ${text(row.successes)}, failed ${text(row.failures)}`, `score ${Math.round(number(row.score) * 100)} %`, row.is_stale === true && "stale: a tool that it calls changed"].filter(Boolean).join(" · ")}
      empty={<><p>Agents save approved results as skills for similar tasks.</p><p class="buttons"><a class="button primary" href={link("chat")}>Ask</a></p></>}
      detail={(row) => <pre class="document" tabIndex={0}>{readable(text(row.solution))}</pre>}
    />
  );
}

export function MemoryView() {
  const me = useLoad(async () => (await json<{ user: string }>("v1/auth/me")).user, []);
  const [typed, setTyped] = useState<string | null>(null);
  // Mine first.
  const named = typed ?? me.data ?? "";
  const user = useLater(named.trim());
  const [reads, setReads] = useState(0);
  const [isAdding, setAdding] = useState(false);
  return (
    <Records
      title="Memory"
      noun="memories"
      path="v1/memory"
      query={user ? `?user=${encodeURIComponent(user)}` : null}
      key_="memories"
      id={(row) => text(row.key)}
      name={(row) => `${text(row.key)}: ${text(row.value)}`}
      about={(row) => `${text(row.kind)} since ${moment(text(row.since))}, from ${text(row.source)}`}
      empty={<><p>{user ? "Facts and preferences that this user states are stored here until you delete them." : "Enter a user name to see their memories."}</p>{user && <p class="buttons"><button type="button" class="primary" onClick={() => setAdding(true)}>Add a fact</button></p>}</>}
      tools={() => <label class="inline">User <input value={named} onInput={(event) => setTyped(event.currentTarget.value)} /></label>}
      above={user && <Remember user={user} isOpen={isAdding} onToggle={setAdding} onDone={() => setReads(reads + 1)} />}
      reads={reads}
    />
  );
}

/** Enters a fact or a wish of a user, or corrects one: the same key has a new value from now on. */
function Remember({ user, isOpen, onToggle, onDone }: { user: string; isOpen: boolean; onToggle: (isOpen: boolean) => void; onDone: () => void }) {
  const [key, setKey] = useState("");
  const [value, setValue] = useState("");
  const [preference, setPreference] = useState(false);
  async function save(event: Event) {
    event.preventDefault();
    const path = `v1/memory/${encodeURIComponent(key.trim())}?user=${encodeURIComponent(user)}`;
    if (!(await attempt(() => json(path, { value: value.trim(), preference }, "PUT"), "Saved."))) return;
    setKey("");
    setValue("");
    onDone();
  }
  return (
    <details open={isOpen} onToggle={(event) => onToggle(event.currentTarget.open)}>
      <summary>Add a memory</summary>
      <form onSubmit={(event) => void save(event)}>
        <label>What it is<input required placeholder="company" value={key} onInput={(event) => setKey(event.currentTarget.value)} /></label>
        <label>Value<input required placeholder="Acme" value={value} onInput={(event) => setValue(event.currentTarget.value)} /></label>
        <label class="choice"><input type="checkbox" checked={preference} onChange={(event) => setPreference(event.currentTarget.checked)} /> A preference, such as a tone or a language</label>
        <p class="buttons"><button type="submit" class="primary">Remember</button></p>
      </form>
    </details>
  );
}
