/** What is said below a list that is cut. */

import { count } from "./time.tsx";

/** Says how many entries are not shown. */
export const Rest = ({ shown, all }: { shown: number; all: number }) => (all > shown ? <p class="hint small">{count(all - shown)} more</p> : null);

/** Says that older entries are not shown, where as many came as were asked for. */
export const Newest = ({ shown, most }: { shown: number; most: number }) => (shown >= most ? <p class="hint small">Only the newest {count(most)} are shown.</p> : null);
