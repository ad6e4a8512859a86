/** The sources of a turn: one entry for each number that the answer cites, with its quotes or queries. */

import type { AgentResult, Citation, Json, Source } from "../api/types.ts";
import { referenced } from "../documents/place.ts";
import { agentName, clip } from "../parts/text.ts";

export interface Cited {
  number: number;
  agent: string;
  /** What the line of the source says. */
  title: string;
  quotes: Quote[];
  calls: { tool: string; args: Json }[];
  /** What the agent answered, where nothing is quoted. */
  output: string;
}

export interface Quote {
  title: string;
  text: string;
  isQuery: boolean;
  /** Where the document opens at the quote. */
  address: string | null;
}

const QUERY = /^\s*(select|with|insert|update|delete|explain|pragma)\b/i;

function quoteOf(source: Source): Quote | null {
  if (!source.quote) return null;
  const isQuery = QUERY.test(source.quote);
  const address = referenced(source);
  const name = source.title ?? source.reference ?? agentName(source.source ?? "");
  const title = isQuery ? `Query on ${source.reference ?? agentName(source.source ?? "")}` : name;
  return { title, text: source.quote, isQuery, address };
}

/** Lists what a turn cites, by number. */
export function cited(citations: Citation[], results: AgentResult[]): Cited[] {
  const numbers = [...new Set(citations.map((citation) => citation.number))].sort((a, b) => a - b);
  return numbers.map((number) => {
    const all = citations.filter((citation) => citation.number === number);
    const agent = all[0]?.agent ?? "";
    const given = results.filter((result) => result.agent === agent);
    const found = given.flatMap((result) => result.sources ?? []).map(quoteOf).filter((quote) => quote !== null);
    const quotes = found.filter((quote, index) => found.findIndex((other) => other.text === quote.text && other.title === quote.title) === index);
    const calls = all.filter((one) => one.arguments !== null && one.arguments !== undefined).map((one) => ({ tool: one.source, args: one.arguments ?? null }));
    const output = given.map((result) => result.output).join("\n\n");
    const first = quotes[0];
    const title = first ? (quotes.length > 1 ? `${first.title} and ${quotes.length - 1} more` : first.title) : clip(output.split("\n", 1)[0] || agentName(all[0]?.source ?? ""), 100);
    return { number, agent, title, quotes, calls, output };
  });
}
