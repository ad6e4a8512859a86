/** Server-sent events, read from a response's body (HTML Living Standard, "Interpreting an event stream"). */

export interface ServerEvent {
  id: string | null;
  event: string;
  data: string;
}

/** Cuts text into events; text may arrive in any pieces. */
export class EventParser {
  private rest = "";
  private id: string | null = null;
  private event = "";
  private data: string[] = [];

  /** Takes a piece of text and returns the events that it completes. */
  push(text: string): ServerEvent[] {
    const events: ServerEvent[] = [];
    const whole = this.rest + text;
    // A carriage return at the end may be half of a line end.
    const cut = whole.endsWith("\r") ? whole.length - 1 : whole.length;
    const lines = whole.slice(0, cut).split(/\r\n|\n|\r/);
    this.rest = (lines.pop() ?? "") + whole.slice(cut);
    for (const line of lines) {
      if (line === "") {
        if (this.data.length > 0 || this.event) {
          events.push({ id: this.id, event: this.event || "message", data: this.data.join("\n") });
        }
        this.event = "";
        this.data = [];
        continue;
      }
      this.field(line);
    }
    return events;
  }

  private field(line: string) {
    if (line.startsWith(":")) return;
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") this.data.push(value);
    else if (name === "event") this.event = value;
    else if (name === "id" && !value.includes("\0")) this.id = value;
  }
}

/** Reads the events of a response until it ends. */
export async function* events(response: Response): AsyncGenerator<ServerEvent> {
  if (!response.body) return;
  const parser = new EventParser();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield* parser.push(value);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
