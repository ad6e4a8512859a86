/** Words that are typed to search, which stand in the address. */

import { useEffect, useState } from "preact/hooks";
import { putQuery, route } from "../router.ts";
import { useLater } from "./later.ts";

const NAME = "words";

/** Returns the words as they are typed, what changes them, and the words once they have stood for a moment. */
export function useWords(): [string, (words: string) => void, string] {
  const there = route.value.query.get(NAME) ?? "";
  const [words, setWords] = useState(there);
  const later = useLater(words.trim());
  useEffect(() => {
    if (later !== there) putQuery({ [NAME]: later });
  }, [later]);
  // A link to another search, or back.
  useEffect(() => {
    if (there !== later) setWords(there);
  }, [there]);
  return [words, setWords, later];
}
