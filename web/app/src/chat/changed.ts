/** Says that threads changed, so that lists of them are read again. */

import { signal } from "@preact/signals";

/** Raised by whatever changed a thread. */
export const threadsChanged = signal(0);
