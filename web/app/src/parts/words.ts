/** Words that are typed to search, which stand in the address. */

import { useEffect, useRef, useState } from "preact/hooks";
import { putQuery, route } from "../router.ts";
import { useLater } from "./later.ts";

const NAME = "words";

/** Returns the words as they are typed, what changes them, and the words once they have stood for a moment. */
export function useWords(): [string, (words: string) => void, string] {
  const there = route.value.query.get(NAME) ?? "";
  const [words, setWords] = useState(there);
  const later = useLater(words.trim());
  const put = useRef(there);
  useEffect(() => {
    if (later === put.current) return;
    put.current = later;
    putQuery({ [NAME]: later });
  }, [later]);
  // A link to another search, or back.
  useEffect(() => {
    if (there === put.current) return;
    put.current = there;
    setWords(there);
  }, [there]);
  return [words, setWords, later];
}
