/** A call of one tool, to try it: its arguments in a form, and what it gave. */

import { useState } from "preact/hooks";
import { resultOf } from "../chat/calls.ts";
import { Dialog } from "../parts/dialog.tsx";
import { attempt } from "../parts/notice.tsx";
import { fieldsOf } from "../parts/schema.ts";
import { Status } from "../parts/status.tsx";
import { readable } from "../parts/text.ts";
import { duration } from "../parts/time.tsx";
import { Values } from "../parts/values.tsx";
import { SchemaForm } from "../people/schema-form.tsx";
import { agents, type Tool, type Tried } from "./agents.ts";

export function ToolCall({ agent, tool, onClose }: { agent: string; tool: Tool; onClose: () => void }) {
  const [isCalling, setCalling] = useState(false);
  const [tried, setTried] = useState<Tried | null>(null);
  async function call(args: Parameters<typeof agents.call>[2]) {
    setCalling(true);
    await attempt(async () => setTried(await agents.call(agent, tool.name, args)));
    setCalling(false);
  }
  return (
    <Dialog title={`Try ${tool.title ?? tool.name}`} onClose={onClose} wide>
      {tool.title && <p class="hint small"><code>{readable(tool.name)}</code></p>}
      {tool.description && <p class="hint">{readable(tool.description)}</p>}
      {!tool.read_only && <p class="warn">This tool can change data. The call is made at once, and is in the audit log.</p>}
      <SchemaForm schema={{ properties: {}, ...fieldsOf(tool.input_schema) }} action={isCalling ? "Calling…" : "Call"} disabled={isCalling} onSubmit={call} />
      {tried && (
        <section aria-label="Result" aria-live="polite">
          <p><Status of={tried.is_error ? "failed" : "done"} words={tried.is_error ? "failed" : "done"} /> <span class="hint">{tried.is_error ? "Failed" : "Done"} in {duration(tried.ms)}</span></p>
          <Values title="Result" value={resultOf(tried.result)} />
        </section>
      )}
    </Dialog>
  );
}
