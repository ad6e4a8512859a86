/** Loads something for a view: the newest request wins, failures are shown, reloading keeps what is there. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ServerError } from "../api/http.ts";
import { reachable } from "../api/reachable.ts";

export interface Loaded<T> {
  data: T | undefined;
  error: Error | undefined;
  loading: boolean;
  reload: () => void;
  /** Replaces the data without a request. */
  set: (data: T) => void;
}

interface Options {
  /** Milliseconds after which it is loaded again while the page is visible. */
  every?: number;
  /** Whether what is there stays until what the changed keys ask for has come. */
  keep?: boolean;
}

/** Loads by `fetcher` whenever one of `keys` changes. */
export function useLoad<T>(fetcher: () => Promise<T>, keys: unknown[], { every, keep }: Options = {}): Loaded<T> {
  const [state, setState] = useState<{ data?: T; error?: Error; loading: boolean }>({ loading: true });
  const turn = useRef(0);
  const isPending = useRef(false);
  const latest = useRef(fetcher);
  latest.current = fetcher;

  const reload = useCallback(() => {
    turn.current += 1;
    const mine = turn.current;
    isPending.current = true;
    setState((before) => ({ ...before, loading: true }));
    const ended = (next: (before: typeof state) => typeof state) => {
      if (mine !== turn.current) return;
      isPending.current = false;
      setState(next);
    };
    latest.current().then(
      (data) => ended(() => ({ data, loading: false })),
      (error: Error) => ended((before) => ({ ...before, error, loading: false })),
    );
  }, []);

  useEffect(() => {
    if (!keep) setState({ loading: true });
    reload();
    return () => {
      turn.current += 1;
    };
  }, keys);

  useEffect(() => {
    if (!every) return;
    // An answer that takes longer than that is waited for.
    const timer = setInterval(() => document.visibilityState === "visible" && !isPending.current && reload(), every);
    return () => clearInterval(timer);
  }, [every, reload]);

  // What failed for want of an answer is read again once there is one.
  const isBack = reachable.value;
  useEffect(() => {
    if (isBack && state.error instanceof ServerError && state.error.status === 0) reload();
  }, [isBack, state.error]);

  const set = useCallback((data: T) => setState({ data, loading: false }), []);
  return { data: state.data, error: state.error, loading: state.loading, reload, set };
}
