/** Text of strangers, made safe to look at. */

/** Characters that no reader sees, or that turn the direction of text around. */
const INVISIBLE = /[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;
/** Controls other than tab and line ends. */
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;

function code(character: string): string {
  return `⟨U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** Writes invisible and direction-changing characters out. */
export function readable(text: string): string {
  return text.replace(CONTROL, code).replace(INVISIBLE, code);
}

/** Shortens text to at most `most` characters. */
export function clip(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

/** Returns the text of a message's content. */
export function contentText(content: string | { type: string; text?: string }[] | undefined): string {
  if (typeof content === "string") return content;
  return (content ?? []).map((part) => part.text ?? `[${part.type}]`).join("");
}

/** Shows the name of an agent, or of a graph's beginning or end, as people say it. */
export function agentName(name: string): string {
  return name.replace(/^mcp_agent_|^__(?=\w+__$)|__$/g, "");
}
