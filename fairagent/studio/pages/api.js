// The API page: an example of each call, for the collection that is open, which can be changed and sent. What only reads
// is sent when its part is opened, what has an effect when one presses its button.

import { record } from "./ask.js";
import { copyButton } from "./copy.js";
import { make } from "./draw.js";
import { asked } from "./token.js";

const SHOWN = 20_000; // characters of a reply
const guarded = document.documentElement.hasAttribute("data-guarded");
const at = (id) => document.getElementById(id);

function editor(call, place) {
  const named = `${call.method} ${call.path}`;
  const address = make("input", { type: "text", value: call.address, spellcheck: "false", autocomplete: "off" });
  const whole = JSON.stringify(call.body, null, 2);
  const body = call.body === null ? null : make("textarea", { spellcheck: "false", autocomplete: "off", rows: Math.min(16, whole.split("\n").length + 1) });
  if (body) body.value = whole;
  const stream = !call.streams ? null : make("input", { type: "checkbox" });
  const said = make("p", { role: "status", class: "said" });
  const reply = make("pre", { tabindex: 0, "aria-label": `Reply of ${named}`, hidden: true });
  const snippets = { curl: make("pre", { tabindex: 0, "aria-label": `curl, ${named}` }), Python: make("pre", { tabindex: 0, "aria-label": `Python, ${named}` }) };
  const send = make("button", { type: "submit", class: "main" }, "Send");
  const form = make(
    "form",
    {},
    make("label", {}, `${call.method} `, address),
    body === null ? null : make("label", {}, "Body ", body),
    stream === null ? null : make("label", { class: "tick" }, stream, "each step as it is made (text/event-stream)"),
    make("div", { class: "act" }, send, " ", make("button", { type: "reset" }, "As it was"), call.effect ? make("span", { class: "badge" }, call.effect) : null),
  );
  const request = () => ({ method: call.method, address: address.value, body: body ? body.value : null, stream: Boolean(stream?.checked) });
  const drawn = () => {
    for (const [kind, text] of Object.entries({ curl: asCurl(request()), Python: asPython(request()) })) snippets[kind].textContent = text;
  };
  form.addEventListener("input", drawn);
  form.addEventListener("reset", () => {
    address.defaultValue = call.address;
    // After the form's own values are back.
    setTimeout(() => {
      if (body) body.value = whole;
      drawn();
    });
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    send.disabled = true;
    said.textContent = "Asking …";
    await show(request(), said, reply);
    send.disabled = false;
  });
  drawn();
  const copies = Object.entries(snippets).map(([kind, shown]) => make("details", { class: "snippet" }, make("summary", {}, kind), copyButton(`as ${kind}`, () => shown.textContent), shown));
  place.replaceChildren(form, said, reply, ...copies);
  return form;
}

async function show(request, said, reply) {
  if (request.body !== null && !parsed(request.body)) {
    said.textContent = "The body is no JSON; nothing was sent.";
    said.className = "said down";
    return;
  }
  const started = performance.now();
  try {
    const headers = { ...(request.body !== null && { "content-type": "application/json" }), ...(request.stream && { accept: "text/event-stream" }) };
    const came = await asked(request.address, { method: request.method, headers, ...(request.body !== null && { body: request.body }) });
    const text = await came.text();
    const seconds = (performance.now() - started) / 1000;
    said.textContent = `${came.status} ${came.statusText}, ${seconds.toFixed(2)} s, ${text.length.toLocaleString("en")} characters`;
    said.className = `said ${came.ok ? "up" : "down"}`;
    const json = came.headers.get("content-type")?.startsWith("application/json") && parsed(text);
    const full = json ? JSON.stringify(json.value, null, 2) : text;
    reply.textContent = full.slice(0, SHOWN) + (full.length > SHOWN ? `\n… ${(full.length - SHOWN).toLocaleString("en")} more characters` : "");
    reply.hidden = false;
  } catch (error) {
    said.textContent = `No reply: ${error.message}`;
    said.className = "said down";
  }
}

function parsed(text) {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return null;
  }
}

// --- the same elsewhere ----------------------------------------------------------------------------------------------

const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

function asCurl({ method, address, body, stream }) {
  const words = ["curl -s"];
  if (method !== "GET" && !(method === "POST" && body !== null)) words[0] += ` -X ${method}`;
  if (stream) words[0] += "N";
  words[0] += ` ${quoted(location.origin + address)}`;
  if (guarded) words.push(`-H "Authorization: Bearer $TOKEN"`);
  if (stream) words.push(`-H 'Accept: text/event-stream'`);
  if (body !== null) words.push(`-H 'Content-Type: application/json'`, `-d ${quoted(body)}`);
  return words.join(" \\\n  ");
}

function asPython({ method, address, body, stream }) {
  const headers = [];
  if (guarded) headers.push(`"Authorization": f"Bearer {os.environ['TOKEN']}"`);
  if (stream) headers.push(`"Accept": "text/event-stream"`);
  const lines = [`    ${JSON.stringify(method)},`, `    ${JSON.stringify(location.origin + address)},`];
  if (headers.length) lines.push(`    headers={${headers.join(", ")}},`);
  if (body !== null) lines.push(`    json=${literal(parsed(body)?.value ?? null)},`);
  const json = !stream && !address.endsWith("/page");
  return `${guarded ? "import os\n\n" : ""}import httpx\n\nreply = httpx.request(\n${lines.join("\n")}\n    timeout=60,\n)\nreply.raise_for_status()\nprint(${json ? "reply.json()" : "reply.text"})\n`;
}

// A value of JSON as Python writes it.
function literal(value) {
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value === "object") return `{${Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${literal(one)}`).join(", ")}}`;
  return JSON.stringify(value);
}

// --- the beginning ---------------------------------------------------------------------------------------------------

function lead(part, call) {
  const place = part.querySelector(".request");
  if (call.lacking) {
    place.replaceChildren(make("p", { class: "notice" }, `No example: ${call.lacking}`));
    return;
  }
  part.addEventListener("toggle", () => {
    if (!part.open || place.firstChild) return;
    const form = editor(call, place);
    if (!call.effect) form.requestSubmit();
  });
}

try {
  at("state").textContent = "Making examples …";
  const { calls } = await record("/api/examples");
  const examples = new Map(calls.map((call) => [`${call.method} ${call.path}`, call]));
  for (const part of document.querySelectorAll(".call")) lead(part, examples.get(part.dataset.call));
  at("state").textContent = "Open a call: its example is for this collection, and can be changed and sent.";
} catch (error) {
  at("state").textContent = "";
  at("error").replaceChildren(make("p", { class: "notice" }, error.message));
}
