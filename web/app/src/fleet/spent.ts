/** What model calls took. */

import { dollars } from "../parts/money.ts";

export interface Spent {
  calls: number;
  input_tokens: number;
  output_tokens: number;
  nano_usd?: number;
  unpriced?: number;
}

export const tokens = (spent: Spent) => spent.input_tokens + spent.output_tokens;

export function cost(spent: Spent): string {
  if (spent.nano_usd === undefined) return "–";
  return `${dollars(spent.nano_usd)}${spent.unpriced ? " and more" : ""}`;
}
