/** What a tenant may use, and what it has used of that. */

import { dollars } from "../parts/money.ts";
import { count } from "../parts/time.tsx";

export interface Limit {
  name: string;
  most: number;
  taken: number | null;
}

const BOUNDS: { [setting: string]: string } = {
  requests_per_minute: "Requests per minute and process",
  max_open_requests: "Concurrent requests per process",
  max_runs: "Concurrent runs",
  max_daily_steps: "Steps today (UTC)",
  max_daily_tokens: "Tokens today (UTC)",
  max_daily_cost_nano_usd: "US dollars today (UTC)",
  max_daily_tool_calls: "Tool calls today (UTC)",
  max_daily_seconds: "Seconds of work today (UTC)",
};

/** Writes an amount in the unit of a limit. */
export const amount = (name: string, value: number) => (name.endsWith("nano_usd") ? dollars(value) : count(value));

/** From this share on, little is left. */
const NEARLY = 0.8;

export function Limits({ limits, title = "Limits", none }: { limits: Limit[]; title?: string; none: string }) {
  return (
    <section class="card" aria-label={title}>
      <h2>{title}</h2>
      {limits.length === 0 ? <p class="hint">{none}</p> : (
        <>
          <div class="scroll" tabIndex={0} role="region" aria-label={`Tenant ${title.toLowerCase()}`}>
            <table class="bars">
              <thead><tr><th>Limit</th><th>Used</th><th class="number">Used</th><th class="number">Limit</th><th>Setting</th></tr></thead>
              <tbody>
                {limits.map(({ name, most, taken }) => (
                  <tr key={name}>
                    <th scope="row">{BOUNDS[name] ?? name}</th>
                    <td>{taken !== null && <meter min={0} max={Math.max(1, most)} high={most * NEARLY} optimum={0} value={taken} aria-label={`${Math.round((100 * taken) / Math.max(1, most))} % used`} />}</td>
                    <td class="number">{taken === null ? "–" : amount(name, taken)}</td>
                    <td class="number">{amount(name, most)}</td>
                    <td><code>serve.{name.replace("nano_usd", "usd")}</code></td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <p class="hint small">Every tenant has these limits. Change them in <code>perihelion.toml</code> and restart the server.</p>
        </>
      )}
    </section>
  );
}
