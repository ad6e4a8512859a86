/** Users of the tenant: added with a password and scopes, and removed. */

import { useState } from "preact/hooks";
import { json } from "../api/http.ts";
import { confirmed } from "../parts/confirm.tsx";
import { useLoad } from "../parts/load.ts";
import { attempt } from "../parts/notice.tsx";
import { Shown } from "../parts/states.tsx";
import { readable } from "../parts/text.ts";
import { moment } from "../parts/time.tsx";
import { Scopes } from "./scopes.tsx";

interface User {
  name: string;
  scopes: string[];
  created_at: string;
}

export function Users({ me, scopes }: { me: string; scopes: string[] }) {
  const users = useLoad(async () => (await json<{ users: User[] }>("v1/users")).users, []);
  async function disable(name: string) {
    if (!(await confirmed(`Remove the access of “${name}”?`, "Remove access", "All sessions end."))) return;
    await attempt(() => json(`v1/users/${encodeURIComponent(name)}`, undefined, "DELETE"), "Access removed.");
    users.reload();
  }
  return (
    <section class="card" aria-label="Users">
      <h2>Users</h2>
      <NewUser scopes={scopes} onAdded={users.reload} />
      <Shown of={users} what="users">
        {(all) => all.length === 0 ? <p class="hint">No users yet.</p> : (
          <ul class="plain-list">
            {all.map((user) => (
              <li key={user.name}>
                <strong>{readable(user.name)}</strong> <span class="hint">{user.scopes.join(", ")}; since {moment(user.created_at)}</span>{" "}
                {user.name !== me && <button type="button" class="danger" onClick={() => void disable(user.name)}>Remove access</button>}
              </li>
            ))}
          </ul>
        )}
      </Shown>
    </section>
  );
}

/** What a new user may do at first. */
const USUAL = ["read", "run", "approve"];

function NewUser({ scopes, onAdded }: { scopes: string[]; onAdded: () => void }) {
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [chosen, setChosen] = useState(() => scopes.filter((scope) => USUAL.includes(scope)));
  async function add(event: Event) {
    event.preventDefault();
    if (!(await attempt(() => json("v1/users", { name, password, scopes: chosen }), "User added."))) return;
    setName("");
    setPassword("");
    onAdded();
  }
  return (
    <details>
      <summary>New user</summary>
      <form onSubmit={(event) => void add(event)}>
        <label>User name<input required autocomplete="off" value={name} onInput={(event) => setName(event.currentTarget.value)} /></label>
        <label>Password<input type="password" required autocomplete="new-password" value={password} onInput={(event) => setPassword(event.currentTarget.value)} /></label>
        <Scopes scopes={scopes.filter((scope) => scope !== "act_as")} chosen={chosen} onChange={setChosen} />
        <p class="buttons"><button type="submit" class="primary">Add user</button></p>
      </form>
    </details>
  );
}
