/** Login and registration, or an API key, shown when the server wants to know who asks. */

import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { ServerError, json, unauthorized } from "../api/http.ts";
import { hasSession, key, useKey } from "../api/who.ts";
import { forgetDrafts } from "../chat/draft.ts";
import { Icon } from "../parts/icon.tsx";
import { attempt } from "../parts/notice.tsx";

/** Whether the server refused a request for want of a login. */
export const needsLogin = signal(false);
unauthorized.notify = () => {
  needsLogin.value = true;
};

export function LoginView() {
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [secret, setSecret] = useState("");
  const [problem, setProblem] = useState(key() ? "Invalid or expired key" : "");
  async function submit(action: "login" | "register") {
    setProblem("");
    try {
      await json(`v1/auth/${action}`, { name, password });
      useKey(null);
      location.reload();
    } catch (error) {
      const absent = error instanceof ServerError && error.status === 404;
      setProblem(absent ? "This server has no users. Enter an API key." : (error as Error).message);
    }
  }
  function enter() {
    useKey(secret.trim());
    location.reload();
  }
  return (
    <main class="login">
      <div>
        <h1>Perihelion</h1>
        {problem && <p class="error-text" role="alert">{problem}</p>}
        <form onSubmit={(event) => (event.preventDefault(), void submit("login"))}>
          <label>Name<input autocomplete="username" required value={name} onInput={(event) => setName(event.currentTarget.value)} /></label>
          <label>Password<input type="password" autocomplete="current-password" required value={password} onInput={(event) => setPassword(event.currentTarget.value)} /></label>
          <p class="buttons">
            <button type="submit" class="primary">Log in</button>
            <button type="button" disabled={!name || !password} onClick={() => void submit("register")}>Register</button>
          </p>
        </form>
        <form onSubmit={(event) => (event.preventDefault(), enter())}>
          <label>API key<input type="password" autocomplete="off" required value={secret} onInput={(event) => setSecret(event.currentTarget.value)} /></label>
          <p class="hint">Stored in this tab until you close it.</p>
          <p class="buttons"><button type="submit">Use the key</button></p>
        </form>
      </div>
    </main>
  );
}

/** Ends the session, or forgets the key; nothing where neither is. */
export function Logout() {
  if (!hasSession() && !key()) return null;
  async function leave() {
    const left = !hasSession() || (await attempt(() => json("v1/auth/logout", {})));
    if (!left) return;
    forgetDrafts();
    useKey(null);
    location.reload();
  }
  return <button type="button" class="side-link" onClick={() => void leave()}><Icon name="logout" /> <span class="label">Log out</span></button>;
}
