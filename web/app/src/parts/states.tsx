/** What a view shows while it loads, when it failed and when there is nothing. */

import type { ComponentChildren } from "preact";
import { ServerError } from "../api/http.ts";
import type { Loaded } from "./load.ts";

export function Failure({ error, retry }: { error: Error; retry?: () => void }) {
  return (
    <div class="failure" role="alert">
      <p>{error.message}</p>
      {retry && (
        <p class="buttons"><button type="button" onClick={retry}>Try again</button></p>
      )}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

export function Loading({ what }: { what: string }) {
  return (
    <p class="loading" role="status">
      Loading {what}…
    </p>
  );
}

/** Tells whether the banner of the page says already what is wrong. */
export const isOutage = (error: Error | undefined) => error instanceof ServerError && error.status === 0;

/** Shows what was loaded, or why it is not there. */
export function Shown<T>({ of, what, children }: { of: Loaded<T>; what: string; children: (data: T) => ComponentChildren }) {
  if (of.data === undefined) {
    if (isOutage(of.error)) return <p class="loading">{what[0]?.toUpperCase() + what.slice(1)}: not loaded yet.</p>;
    return of.error ? <Failure error={of.error} retry={of.reload} /> : <Loading what={what} />;
  }
  return (
    <>
      {of.error && !isOutage(of.error) && <Failure error={of.error} retry={of.reload} />}
      {children(of.data)}
    </>
  );
}
