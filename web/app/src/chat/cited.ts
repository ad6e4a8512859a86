/** The sources of a turn: one entry for each number that the answer cites, with its quotes or queries. */

import type { Json, Source } from "../api/types.ts";
import { referenced } from "../documents/place.ts";
import { agentName, contentText } from "../parts/text.ts";
import type { Turn } from "./turns.ts";

export interface Cited {
  number: number;
  /** How often the answer cites it. */
  times: number;
  agent: string;
  /** What is quoted; empty where nothing is. */
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

/** How an answer cites a source. */
const CITATION = /\[(\d{1,3})\]/g;

const QUERY = /^\s*(select|with|insert|update|delete|explain|pragma)\b/i;

/** Returns the queries among the arguments of calls that went well, each once. */
export function queriesOf(calls: { arguments?: Json }[]): string[] {
  const texts = calls.flatMap((call) => (typeof call.arguments === "object" && call.arguments !== null ? Object.values(call.arguments) : []));
  return [...new Set(texts.filter((text): text is string => typeof text === "string" && QUERY.test(text)))];
}

function quoteOf(source: Source): Quote | null {
  if (!source.quote) return null;
  const isQuery = QUERY.test(source.quote);
  const address = referenced(source);
  const name = source.title ?? source.reference ?? agentName(source.source ?? "");
  const title = isQuery ? `Query on ${source.reference ?? agentName(source.source ?? "")}` : source.page ? `${name}, page ${source.page}` : name;
  return { title, text: source.quote, isQuery, address };
}

/** Lists what a turn cites, in the order in which its answer does so first; what it cites nowhere follows by number. */
export function cited({ citations, answers, work: { results } }: Pick<Turn, "citations" | "answers" | "work">): Cited[] {
  const places = [...answers.map(({ content }) => contentText(content)).join("\n").matchAll(CITATION)].map(([, number]) => Number(number));
  const known = [...new Set(citations.map((citation) => citation.number))].sort((a, b) => a - b);
  const numbers = [...new Set([...places.filter((number) => known.includes(number)), ...known])];
  return numbers.map((number) => {
    const all = citations.filter((citation) => citation.number === number);
    const agent = all[0]?.agent ?? "";
    // The number is that of the result; where results are missing, all of the agent's are meant.
    const result = results[number - 1];
    const given = result?.agent === agent ? [result] : results.filter((one) => one.agent === agent);
    const found = given.flatMap((result) => result.sources ?? []).map(quoteOf).filter((quote) => quote !== null);
    const quoted = found.filter((quote, index) => found.findIndex((other) => other.text === quote.text && other.title === quote.title) === index);
    // Where nothing is quoted, the last query is what the answer comes from.
    const query = queriesOf(all).at(-1);
    const quotes = quoted.length === 0 && query ? [{ title: `Query of ${agentName(agent)}`, text: query, isQuery: true, address: null }] : quoted;
    const calls = all.filter((one) => one.arguments !== null && one.arguments !== undefined).map((one) => ({ tool: one.source, args: one.arguments ?? null }));
    const output = given.map((result) => result.output).join("\n\n");
    const first = quotes[0];
    const title = first ? (quotes.length > 1 ? `${first.title} and ${quotes.length - 1} more` : first.title) : "";
    return { number, times: places.filter((place) => place === number).length, agent, title, quotes, calls, output };
  });
}

/** Breaks a query before its clauses. */
export function laidOut(query: string): string {
  if (query.includes("\n")) return query;
  return query.replace(/\s+(FROM|WHERE|GROUP BY|ORDER BY|HAVING|LIMIT|LEFT JOIN|INNER JOIN|JOIN|UNION)\b/gi, "\n$1").replace(/\s+AND\b/gi, "\n  AND");
}
