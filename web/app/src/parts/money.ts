/** Amounts of money. */

/** Writes billionths of a dollar. */
export function dollars(nano: number): string {
  const usd = nano / 1e9;
  if (usd > 0 && usd < 0.00005) return "< $0.0001";
  return `$${usd.toFixed(usd === 0 || usd >= 1 ? 2 : usd < 0.01 ? 4 : 3)}`;
}
