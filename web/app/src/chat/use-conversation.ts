/** Opens a thread for as long as a view shows it. */

import { useEffect, useMemo } from "preact/hooks";
import { Conversation } from "./conversation.ts";

/** Milliseconds between looks whether another tab or process began a run in the open thread. */
const LOOK = 5_000;

export function useConversation(thread: string): Conversation {
  const conversation = useMemo(() => new Conversation(thread), [thread]);
  useEffect(() => {
    const look = () => document.visibilityState === "visible" && void conversation.look().catch(() => {});
    const timer = setInterval(look, LOOK);
    document.addEventListener("visibilitychange", look);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", look);
      conversation.close();
    };
  }, [conversation]);
  return conversation;
}
