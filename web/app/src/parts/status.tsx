/** How something stands, as an icon with words for those who do not see it. */

import { Icon, type IconName } from "./icon.tsx";

const ICONS: { [status: string]: IconName } = { idle: "check", done: "check", success: "check", busy: "loader", working: "loader", running: "loader", pending: "circle", interrupted: "help", waiting: "help", error: "alert", failed: "alert", timeout: "alert", stopped: "stop", later: "circle", open: "circle" };
const LOOKS: { [status: string]: string } = { idle: "idle", done: "good", success: "good", busy: "busy", working: "busy", running: "busy", interrupted: "interrupted", waiting: "interrupted", error: "bad", failed: "bad", timeout: "bad" };

export function Status({ of, words }: { of: string; words: string }) {
  const icon = ICONS[of] ?? "circle";
  return (
    <span class={`mark ${LOOKS[of] ?? ""}`} role="img" aria-label={words} title={words}>
      <Icon name={icon} class={icon === "loader" ? "spin" : ""} />
    </span>
  );
}
