/** A thread as a conversation, or where a new one begins. */

import { NewThread } from "./new-thread.tsx";
import { OpenThread } from "./open-thread.tsx";

export function ChatView({ thread }: { thread: string | undefined }) {
  return thread ? <OpenThread key={thread} thread={thread} /> : <NewThread />;
}
