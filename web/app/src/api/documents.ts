/** Documents: sent, listed, read, found by what they say. */

import { ServerError, UNREACHABLE, json, words } from "./http.ts";
import { proof } from "./who.ts";

export interface DocumentHead {
  id: string;
  title: string;
  path: string;
  format: string;
  collection: string;
  characters: number;
  bytes: number;
  warnings: string[];
  description: { summary?: string } | null;
}

/** A place in a document that a search found, in characters. */
export interface Hit {
  document: string;
  title: string;
  page?: number | null;
  section?: string | null;
  start: number;
  end: number;
  quote: string;
}

/** A part of a document's text, in characters from its beginning. */
export interface Part {
  title: string;
  start: number;
  end: number;
  text: string;
  /** Where the document has pages. */
  number?: number;
  pages?: number;
}

export interface Added {
  document: DocumentHead;
  unchanged: boolean;
  by_words_only: string | null;
}

const at = (id: string) => `v1/documents/${encodeURIComponent(id)}`;

/** Formats that have pages, slides or sheets. */
const PAGED = new Set(["pdf", "pptx", "xlsx", "xls", "ods"]);

/** Characters that are read at a time of a document without pages. */
export const AROUND = 4_000;

export const documents = {
  list: async () => (await json<{ documents: DocumentHead[] }>("v1/documents")).documents,
  search: async (text: string) => (await json<{ hits: Hit[] }>(`v1/documents/search?text=${encodeURIComponent(text)}`)).hits,
  remove: (id: string) => json<null>(at(id), undefined, "DELETE"),
  page: (id: string, number: number) => json<Part>(`${at(id)}/page?number=${number}`),
  /** Reads a document without pages from a character on. */
  from: ({ id, characters }: DocumentHead, from: number) => json<Part>(`${at(id)}?start=${from}&end=${Math.min(characters, from + AROUND)}`),
  /** Reads the page on which a place stands, or what is around it in a document without pages. */
  around: (head: DocumentHead, start: number) => (PAGED.has(head.format) ? json<Part>(`${at(head.id)}/page?at=${start}`) : documents.from(head, Math.max(0, start - AROUND / 4))),
};

/** Sends a file, saying how much of it has arrived; `fetch` would not say. */
export function upload(file: File, progress: (share: number) => void): Promise<Added> {
  return new Promise((done, failed) => {
    const request = new XMLHttpRequest();
    request.open("POST", `v1/documents?name=${encodeURIComponent(file.name)}`);
    for (const [header, value] of Object.entries(proof("POST"))) request.setRequestHeader(header, value);
    request.setRequestHeader("content-type", "application/octet-stream");
    request.upload.onprogress = (event) => event.lengthComputable && progress(event.loaded / event.total);
    request.onerror = () => failed(new ServerError(UNREACHABLE, 0));
    request.onload = () => {
      let body: unknown = request.responseText;
      try {
        body = JSON.parse(request.responseText);
      } catch {
        // The words of a proxy, say, are shown as they are.
      }
      if (request.status >= 200 && request.status < 300) done(body as Added);
      else failed(new ServerError(words(body, request.status), request.status));
    };
    request.send(file);
  });
}
