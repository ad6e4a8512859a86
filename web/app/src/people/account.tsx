/** Who asks, their keys, and for those who manage: users and the audit. */

import { useState } from "preact/hooks";
import { json } from "../api/http.ts";
import { useKey } from "../api/who.ts";
import { KeysSetting } from "../keys.tsx";
import type { Json } from "../api/types.ts";
import { ListTable } from "../parts/list-table.tsx";
import { useLoad } from "../parts/load.ts";
import { confirmed } from "../parts/confirm.tsx";
import { CopyButton } from "../parts/copy.tsx";
import { attempt } from "../parts/notice.tsx";
import { Newest } from "../parts/rest.tsx";
import { Shown } from "../parts/states.tsx";
import { agentName, readable } from "../parts/text.ts";
import { Time, moment } from "../parts/time.tsx";
import { link } from "../router.ts";
import { Limits, type Limit } from "./limits.tsx";
import { Scopes } from "./scopes.tsx";
import { Users } from "./users.tsx";

interface Me {
  user: string;
  tenant: string;
  scopes: string[];
  proved_by: string;
  limits: Limit[];
}

interface Key {
  name: string;
  user: string | null;
  scopes: string[];
  created_at: string;
  expires_at: string | null;
  revoked_at: string | null;
}

interface Entry {
  at: string;
  actor: string;
  action: string;
  subject: string;
  thread: string | null;
  details: Json;
}

const WAYS: { [way: string]: string } = { loopback: "on this machine, without a login", key: "by an API key", session: "by a login", token: "by a token of an issuer" };

export function AccountView() {
  const me = useLoad(() => json<Me>("v1/auth/me"), []);
  return (
    <div class="view">
      <header class="view-head"><h1>Settings</h1></header>
      <Shown of={me} what="your account">
        {(who) => (
          <>
            <dl class="fields card">
              <dt>User</dt><dd>{readable(who.user)}</dd>
              <dt>Tenant</dt><dd>{readable(who.tenant)}</dd>
              <dt>Login</dt><dd>{WAYS[who.proved_by] ?? who.proved_by}</dd>
              <dt>Scopes</dt><dd>{who.scopes.join(", ")}</dd>
            </dl>
            <section class="card" aria-label="Keyboard"><KeysSetting /></section>
            <Limits limits={who.limits} none="Your tenant has no limits." />
            <Keys who={who} />
            {who.scopes.includes("manage") && <><Users me={who.user} scopes={who.scopes} /><Audit /></>}
          </>
        )}
      </Shown>
    </div>
  );
}

function Keys({ who }: { who: Me }) {
  const keys = useLoad(async () => (await json<{ keys: Key[] }>("v1/keys")).keys, []);
  const [made, setMade] = useState<{ name: string; key: string } | null>(null);
  // Where nobody had to prove anything, everybody has to from the first key on: this tab does so by that key.
  const isOpen = who.proved_by === "loopback";
  function arrived(key: { name: string; key: string }) {
    if (isOpen) useKey(key.key);
    setMade(key);
    keys.reload();
  }
  async function revoke(name: string) {
    if (!(await confirmed(`Revoke the key “${name}”?`, "Revoke", "Programs that use it will be rejected."))) return;
    await attempt(() => json(`v1/keys/${encodeURIComponent(name)}`, undefined, "DELETE"), "Revoked.");
    keys.reload();
  }
  return (
    <section class="card">
      <h2>API keys</h2>
      <NewKey scopes={who.scopes} isFirst={isOpen} onMade={arrived} />
      {made && (
        <p class="made" role="status">The key {readable(made.name)}, shown this once: <code>{made.key}</code> <CopyButton text={made.key} /></p>
      )}
      <Shown of={keys} what="keys">
        {(all) => all.length === 0 ? <p class="hint">No keys yet. Create one for a program, with at most your own scopes.</p> : (
          <ListTable label="Keys" heads={{ Key: "", Scopes: "", Created: "", Expires: "", Action: "" }}>
            {all.map((one) => (
              <tr key={`${one.name} ${one.created_at}`}>
                <th scope="row">{readable(one.name)}</th>
                <td>{one.scopes.join(", ")}</td>
                <td><Time of={one.created_at} /></td>
                <td>{one.revoked_at ? "revoked" : one.expires_at ? moment(one.expires_at) : "never"}</td>
                <td>{!one.revoked_at && <button type="button" class="danger" onClick={() => void revoke(one.name)}>Revoke</button>}</td>
              </tr>
            ))}
          </ListTable>
        )}
      </Shown>
    </section>
  );
}

function NewKey({ scopes, isFirst, onMade }: { scopes: string[]; isFirst: boolean; onMade: (key: { name: string; key: string }) => void }) {
  const [name, setName] = useState("");
  const [chosen, setChosen] = useState(() => scopes.filter((scope) => isFirst || scope !== "manage"));
  const [days, setDays] = useState("");
  async function make(event: Event) {
    event.preventDefault();
    const expires_at = Number(days) > 0 ? new Date(Date.now() + Number(days) * 86_400_000).toISOString() : null;
    await attempt(async () => {
      onMade(await json<{ name: string; key: string }>("v1/keys", { name: name.trim(), scopes: chosen, expires_at }));
      setName("");
    });
  }
  return (
    <details>
      <summary>New key</summary>
      {isFirst && <p class="warn">This server requires no login. After you create the first key, it requires one. This tab will use that key, so save it.</p>}
      <form onSubmit={(event) => void make(event)}>
        <label>Key name<input required value={name} onInput={(event) => setName(event.currentTarget.value)} /></label>
        <Scopes scopes={scopes} chosen={chosen} onChange={setChosen} />
        <label>Days until expiry (optional)<input type="number" min="1" value={days} onInput={(event) => setDays(event.currentTarget.value)} /></label>
        <p class="buttons"><button type="submit" class="primary">Create key</button></p>
      </form>
    </details>
  );
}

/** Says which scopes a user has since a change. */
const scopesOf = ({ details }: Entry) => (typeof details === "object" && details !== null && !Array.isArray(details) && Array.isArray(details.scopes) ? details.scopes.join(", ") : "");

/** Entries of the audit log that are shown. */
const MOST = 100;

function Audit() {
  const entries = useLoad(async () => (await json<{ entries: Entry[] }>(`v1/audit?limit=${MOST}`)).entries, []);
  return (
    <section class="card">
      <h2>Audit log</h2>
      <Shown of={entries} what="the audit">
        {(all) => all.length === 0 ? <p class="hint">No entries yet.</p> : (
          <><ListTable label="Audit" heads={{ Time: "", User: "", Action: "", Subject: "" }}>
            {all.map((entry, index) => (
              <tr key={index}>
                <td><Time of={entry.at} /></td>
                <td>{readable(entry.actor)}</td>
                <td>{readable(entry.action)}</td>
                <td>{entry.thread ? <a href={link("chat", entry.thread)}>{readable(agentName(entry.subject))}</a> : readable(entry.subject)} <span class="hint">{scopesOf(entry)}</span></td>
              </tr>
            ))}
          </ListTable>
          <Newest shown={all.length} most={MOST} /></>
        )}
      </Shown>
    </section>
  );
}
