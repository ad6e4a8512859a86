/** Users of the tenant: added with a password and scopes, given other scopes, and removed; and what each of them uses. */

import { useState } from "preact/hooks";
import { json } from "../api/http.ts";
import { tokens, type Spent } from "../fleet/spent.ts";
import { confirmed } from "../parts/confirm.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { ListTable } from "../parts/list-table.tsx";
import { useLoad } from "../parts/load.ts";
import { attempt } from "../parts/notice.tsx";
import { Shown } from "../parts/states.tsx";
import { readable } from "../parts/text.ts";
import { Time, count } from "../parts/time.tsx";
import { Scopes } from "./scopes.tsx";

interface User {
  name: string;
  scopes: string[];
  created_at: string;
}

const HEADS = { User: "", Scopes: "", Added: "", "Tokens, 7 days": "number", Actions: "hidden" } as const;

const address = (name: string) => `v1/users/${encodeURIComponent(name)}`;

export function Users({ me, scopes }: { me: string; scopes: string[] }) {
  const users = useLoad(async () => (await json<{ users: User[] }>("v1/users")).users, []);
  const used = useLoad(async () => (await json<{ by_user: { [name: string]: Spent } }>("v1/fleet/usage?days=7")).by_user, []);
  const [changing, setChanging] = useState<User | null>(null);
  async function disable(name: string) {
    if (!(await confirmed(`Remove the access of “${name}”?`, "Remove access", "All sessions end."))) return;
    await attempt(() => json(address(name), undefined, "DELETE"), "Access removed.");
    users.reload();
  }
  const tokensOf = (name: string) => {
    const spent = used.data?.[name];
    return spent ? count(tokens(spent)) : "–";
  };
  return (
    <section class="card" aria-label="Users">
      <h2>Users</h2>
      <NewUser scopes={scopes} onAdded={users.reload} />
      <Shown of={users} what="users">
        {(all) => all.length === 0 ? <p class="hint">No users yet.</p> : (
          <ListTable label="User list" heads={HEADS}>
            {all.map((user) => (
              <tr key={user.name}>
                <th scope="row">{readable(user.name)}</th>
                <td>{user.scopes.join(", ") || "none"}</td>
                <td><Time of={user.created_at} /></td>
                <td class="number">{tokensOf(user.name)}</td>
                <td>{user.name !== me && <span class="row-tools"><button type="button" aria-label={`Change scopes of ${user.name}`} onClick={() => setChanging(user)}>Change scopes</button> <button type="button" class="danger" aria-label={`Remove access of ${user.name}`} onClick={() => void disable(user.name)}>Remove access</button></span>}</td>
              </tr>
            ))}
          </ListTable>
        )}
      </Shown>
      {changing && <ChangeScopes user={changing} scopes={scopes} onClose={() => (setChanging(null), users.reload())} />}
    </section>
  );
}

/** Scopes that a user can have. */
const ofUsers = (scopes: string[]) => scopes.filter((scope) => scope !== "act_as");

/** Gives a user other scopes: those of the caller, and those that the user has already. */
function ChangeScopes({ user, scopes, onClose }: { user: User; scopes: string[]; onClose: () => void }) {
  const [chosen, setChosen] = useState(user.scopes);
  async function save(event: Event) {
    event.preventDefault();
    if (await attempt(() => json(address(user.name), { scopes: chosen }, "PATCH"), "Scopes changed.")) onClose();
  }
  return (
    <Dialog title={`Scopes of ${readable(user.name)}`} onClose={onClose}>
      <form onSubmit={(event) => void save(event)}>
        <Scopes scopes={[...new Set([...ofUsers(scopes), ...user.scopes])]} chosen={chosen} onChange={setChosen} />
        <p class="hint small">Sessions and keys of this user have at most these scopes from now on.</p>
        <p class="buttons"><button type="submit" class="primary" disabled={chosen.length === 0}>Save</button><button type="button" onClick={onClose}>Cancel</button></p>
      </form>
    </Dialog>
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
        <Scopes scopes={ofUsers(scopes)} chosen={chosen} onChange={setChosen} />
        <p class="buttons"><button type="submit" class="primary">Add user</button></p>
      </form>
    </details>
  );
}
