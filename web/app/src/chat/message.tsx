/** One message of the conversation. */

import type { Message } from "../api/types.ts";
import { Markdown } from "../parts/markdown.tsx";
import { agentName, contentText, readable } from "../parts/text.ts";

interface Props {
  message: Message;
  onCite?: (number: number) => void;
  onEdit?: () => void;
  /** Asks the same once more. */
  onAgain?: () => void;
  writing?: boolean;
}

export function MessageView({ message, onCite, onEdit, onAgain, writing }: Props) {
  const text = contentText(message.content);
  const fromUser = message.type === "human";
  if (!fromUser && message.name && message.name !== "qa") {
    return (
      <details class="message agent">
        <summary>
          <span class="who">{agentName(message.name)}</span>
          <span class="first-line">{readable(text.split("\n", 1)[0] ?? "").slice(0, 120)}</span>
        </summary>
        <Markdown text={text} {...(onCite && { onCite })} />
      </details>
    );
  }
  return (
    <article class={fromUser ? "message user" : "message answer"} aria-busy={writing ?? false} aria-label={fromUser ? "You" : "Answer"}>
      {fromUser ? <p class="question">{readable(text)}</p> : <Markdown text={text} {...(onCite && { onCite })} />}
      <footer class="message-tools">
        {onEdit && (
          <button type="button" class="link" onClick={onEdit}>
            Edit and branch
          </button>
        )}
        {onAgain && (
          <button type="button" class="link" onClick={onAgain}>
            Ask again
          </button>
        )}
        {!writing && (
          <button type="button" class="link" onClick={() => void navigator.clipboard.writeText(text)}>
            Copy
          </button>
        )}
      </footer>
    </article>
  );
}
