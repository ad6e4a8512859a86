/** What a view shows while it loads, when it failed and when there is nothing. */

import type { ComponentChildren } from "preact";
import type { Loaded } from "./load.ts";

export function Failure({ error, retry }: { error: Error; retry?: () => void }) {
  return (
    <div class="failure" role="alert">
      <p>{error.message}</p>
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
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

/** Shows what was loaded, or why it is not there. */
export function Shown<T>({ of, what, children }: { of: Loaded<T>; what: string; children: (data: T) => ComponentChildren }) {
  if (of.data === undefined) {
    return of.error ? <Failure error={of.error} retry={of.reload} /> : <Loading what={what} />;
  }
  return (
    <>
      {of.error && <Failure error={of.error} retry={of.reload} />}
      {children(of.data)}
    </>
  );
}
