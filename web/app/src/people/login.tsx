/** Login and registration, or an API key, shown when the server wants to know who asks. */

import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { json, unauthorized } from "../api/http.ts";
import { hasSession, key, useKey } from "../api/who.ts";
import { forgetDrafts } from "../chat/draft.ts";
import { Icon } from "../parts/icon.tsx";
import { useLoad } from "../parts/load.ts";
import { attempt } from "../parts/notice.tsx";
import { Shown } from "../parts/states.tsx";
import { store, stored } from "../parts/stored.ts";
import { route } from "../router.ts";

/** Whether the server refused a request for want of a login. */
export const needsLogin = signal(false);
unauthorized.notify = () => {
  needsLogin.value = true;
};

/** The ways to log in that the server has. */
interface Ways {
  password: boolean;
  registration: boolean;
  /** Name of the identity provider. */
  single_sign_on: string | null;
}

/** Why a login at an identity provider failed. */
const PROBLEMS: { [word: string]: string } = {
  expired: "The login took too long or was started in another tab. Log in again.",
  denied: "The login was cancelled.",
  forbidden: "Your account may not use this service. Ask its operator for a role.",
  taken: "Another user of this service has your name. Ask its operator.",
  provider: "The identity provider can't be reached or sent a wrong answer. Try again later.",
};

/** Under which name this browser keeps who logged in last. */
const LAST = "perihelion-user";

/** Forgets the drafts of another user; who comes by a key or an identity provider may be another one. */
function forgetOthers(name?: string) {
  if (!name || stored(LAST) !== name) forgetDrafts();
  store(LAST, name);
}

export function LoginView() {
  const ways = useLoad(() => json<Ways>("v1/auth/ways"), []);
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [secret, setSecret] = useState("");
  const failed = PROBLEMS[route.value.query.get("login_problem") ?? ""];
  const [problem, setProblem] = useState(key() ? "Invalid or expired key" : (failed ?? ""));
  async function submit(action: "login" | "register") {
    setProblem("");
    try {
      await json(`v1/auth/${action}`, { name, password });
      forgetOthers(name);
      useKey(null);
      location.reload();
    } catch (error) {
      setProblem((error as Error).message);
    }
  }
  function enter() {
    forgetOthers();
    useKey(secret.trim());
    location.reload();
  }
  const { password: hasPasswords = false, registration = false, single_sign_on: provider = null } = ways.data ?? {};
  const next = failed ? "#/chat" : location.hash;
  return (
    <main class="login">
      <div>
        <h1>Perihelion</h1>
        {problem && <p class="error-text" role="alert">{problem}</p>}
        {provider && <p class="buttons"><a class="button primary" onClick={() => forgetOthers()} href={`v1/auth/oidc/login?next=${encodeURIComponent(next)}`}>Log in with {provider}</a></p>}
        {hasPasswords && (
          <form onSubmit={(event) => (event.preventDefault(), void submit("login"))}>
            <label>Name<input autocomplete="username" required value={name} onInput={(event) => setName(event.currentTarget.value)} /></label>
            <label>Password<input type="password" autocomplete="current-password" required value={password} onInput={(event) => setPassword(event.currentTarget.value)} /></label>
            <p class="buttons">
              <button type="submit" class={provider ? "" : "primary"}>Log in</button>
              {registration && <button type="button" disabled={!name || !password} onClick={() => void submit("register")}>Register</button>}
            </p>
          </form>
        )}
        <Shown of={ways} what="the login">{() => (
          <form onSubmit={(event) => (event.preventDefault(), enter())}>
            <label>API key<input type="password" autocomplete="off" required value={secret} onInput={(event) => setSecret(event.currentTarget.value)} /></label>
            <p class="hint">Stored in this tab until you close it.</p>
            <p class="buttons"><button type="submit" class={provider || hasPasswords ? "" : "primary"}>Use the key</button></p>
          </form>
        )}</Shown>
      </div>
    </main>
  );
}

/** Ends the session, or forgets the key; nothing where neither is. */
export function Logout() {
  if (!hasSession() && !key()) return null;
  async function leave() {
    let out: { logout_url?: string } | null = null;
    const left = !hasSession() || (await attempt(async () => void (out = await json("v1/auth/logout", {}))));
    if (!left) return;
    forgetDrafts();
    useKey(null);
    // A user of an identity provider is logged out there as well.
    const { logout_url: address } = (out ?? {}) as { logout_url?: string };
    if (address) location.assign(address);
    else location.reload();
  }
  return <button type="button" class="side-link" onClick={() => void leave()}><Icon name="logout" /> <span class="label">Log out</span></button>;
}
