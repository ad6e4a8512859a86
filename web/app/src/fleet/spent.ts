/** What model calls took. */

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
  return `$${(spent.nano_usd / 1e9).toFixed(spent.nano_usd < 1e7 ? 4 : 2)}${spent.unpriced ? " and more" : ""}`;
}
