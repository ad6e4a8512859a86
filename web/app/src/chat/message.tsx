/** One message of the conversation. */

import type { Message } from "../api/types.ts";
import { CopyButton } from "../parts/copy.tsx";
import { Icon } from "../parts/icon.tsx";
import { Markdown } from "../parts/markdown.tsx";
import { contentText, readable } from "../parts/text.ts";

interface QuestionProps {
  message: Message;
  onEdit?: (() => void) | undefined;
  /** Asks the same once more. */
  onAgain?: (() => void) | undefined;
}

export function Question({ message, onEdit, onAgain }: QuestionProps) {
  const text = contentText(message.content);
  return (
    <article class="message user" aria-label="You">
      <p class="question">{readable(text)}</p>
      <footer class="message-tools">
        {onEdit && <button type="button" class="square" aria-label="Edit" title="Edit" onClick={onEdit}><Icon name="pencil" /></button>}
        {onAgain && <button type="button" class="square" aria-label="Retry" title="Retry" onClick={onAgain}><Icon name="retry" /></button>}
        <CopyButton text={text} />
      </footer>
    </article>
  );
}

interface AnswerProps {
  message: Message;
  onCite?: ((number: number) => void) | undefined;
  writing?: boolean;
}

export function Answer({ message, onCite, writing }: AnswerProps) {
  const text = contentText(message.content);
  return (
    <article class="message answer" aria-busy={writing ?? false} aria-label="Answer">
      <Markdown text={text} {...(onCite && { onCite })} />
    </article>
  );
}
