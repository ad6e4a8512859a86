/** Login and registration, shown when the server wants to know who asks. */

import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { json, unauthorized } from "../api/http.ts";

/** Whether the server refused a request for want of a login. */
export const needsLogin = signal(false);
unauthorized.notify = () => {
  needsLogin.value = true;
};

export function LoginView() {
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [problem, setProblem] = useState("");
  async function submit(action: "login" | "register") {
    setProblem("");
    try {
      await json(`v1/auth/${action}`, { name, password });
      location.reload();
    } catch (error) {
      setProblem((error as Error).message);
    }
  }
  return (
    <main class="login">
      <form onSubmit={(event) => (event.preventDefault(), void submit("login"))}>
        <h1>Perihelion</h1>
        <label>Name<input autocomplete="username" required value={name} onInput={(event) => setName(event.currentTarget.value)} /></label>
        <label>Password<input type="password" autocomplete="current-password" required value={password} onInput={(event) => setPassword(event.currentTarget.value)} /></label>
        {problem && <p class="error-text" role="alert">{problem}</p>}
        <p class="buttons">
          <button type="submit" class="primary">Log in</button>
          <button type="button" onClick={() => void submit("register")}>Register</button>
        </p>
      </form>
    </main>
  );
}
