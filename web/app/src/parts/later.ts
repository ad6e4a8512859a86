/** A value that follows another one once that has stood for a moment, so that not every letter asks the server. */

import { useEffect, useState } from "preact/hooks";

/** Milliseconds without another letter. */
const STILL = 200;

export function useLater<T>(value: T): T {
  const [later, setLater] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setLater(value), STILL);
    return () => clearTimeout(timer);
  }, [value]);
  return later;
}
