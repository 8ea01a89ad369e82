// Asking the server: records, and events while they happen.

import { asked } from "./token.js";

export async function record(path, body, signal) {
  const options = body === undefined ? { signal } : { ...posted(body), signal };
  return (await answered(path, options)).json();
}

export async function answered(path, options) {
  const reply = await asked(path, options);
  if (reply.ok) return reply;
  const said = await reply.json().catch(() => ({ error: `the server says ${reply.status}` }));
  throw Object.assign(new Error(said.error), { status: reply.status });
}

// Calls on(kind, record) for every event, and returns the record of the last, the result.
export async function events(path, body, on, signal) {
  const options = posted(body);
  options.headers.accept = "text/event-stream";
  const reply = await answered(path, { ...options, signal });
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error("the server has gone before it was done");
    text += value;
    const parts = text.split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      const [first, second] = part.split("\n");
      const kind = first.slice("event: ".length);
      const said = JSON.parse(second.slice("data: ".length));
      if (kind === "error") throw new Error(said.error);
      if (kind === "result") return said;
      on(kind, said);
    }
  }
}

function posted(body) {
  return { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}
