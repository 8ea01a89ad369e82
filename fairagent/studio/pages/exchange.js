// Drawing exchanges with models. Every text becomes a text node.

import { record } from "./ask.js";
import { make } from "./draw.js";

// The text's pieces, with what was searched for marked.
export function marked(text, sought) {
  if (!sought) return [text];
  const low = text.toLowerCase();
  const what = sought.toLowerCase();
  // Some letters become two when they are made small: then places do not match, and nothing is marked.
  if (low.length !== text.length) return [text];
  const pieces = [];
  let from = 0;
  for (let found = low.indexOf(what); found >= 0; found = low.indexOf(what, from)) {
    pieces.push(text.slice(from, found), make("mark", {}, text.slice(found, found + what.length)));
    from = found + what.length;
  }
  return [...pieces, text.slice(from)];
}

export const many = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;

export function took(one) {
  const cost = one.cost === null ? "price unknown" : `$${one.cost.toFixed(4)}`;
  return `${many(one.calls, "call")}, ${many(one.input_tokens, "token")} in, ${one.output_tokens.toLocaleString("en")} out, ${cost}`;
}

function block(name, said, sought, all) {
  const rest = said.more ? make("p", { class: "hint" }, `${many(said.more, "more character")} in the file. `, make("button", { type: "button", onclick: all }, "Show all of it")) : null;
  return [make("p", { class: "role" }, name), make("pre", { tabindex: 0, "aria-label": name }, marked(said.text, sought)), rest];
}

const holds = (one, sought) =>
  sought &&
  [one.prompt, one.error, one.answer.text, ...one.messages.map((each) => each.text), ...one.attempts.flatMap((each) => [each.error, each.answer.text])]
    .some((text) => text.toLowerCase().includes(sought.toLowerCase()));

// `run` is whose transcript it is; what holds the text that was searched for is open.
export function exchange(one, run, sought) {
  const badge = (kind, text) => make("span", { class: `badge ${kind}` }, text);
  const summary = make(
    "summary",
    {},
    make("b", {}, one.prompt || "no template"),
    ` ${one.model} `,
    one.error ? badge("no", "no usable reply") : badge("yes", one.finish),
    one.cached ? badge("", "from the cache") : null,
    one.attempts.length ? badge("no", `${many(one.attempts.length, "attempt")} before`) : null,
    make("small", { class: "soft" }, ` ${one.input_tokens.toLocaleString("en")} → ${one.output_tokens.toLocaleString("en")} tokens, ${one.seconds.toFixed(2)} s`),
  );
  const element = make("details", { class: "exchange", id: `exchange-${one.number}`, open: Boolean(holds(one, sought)) }, summary);
  const fill = (told) => element.replaceChildren(summary, ...body(told, sought, all));
  const all = async () => {
    try {
      fill(await record(`/api/runs/${encodeURIComponent(run)}/exchange?${new URLSearchParams({ number: one.number })}`));
    } catch (error) {
      element.append(make("p", { role: "alert", class: "notice" }, error.message));
    }
  };
  fill(one);
  return element;
}

function body(one, sought, all) {
  const asked = [one.reply ? `a reply of the form ${one.reply}` : "free text"];
  for (const name of ["temperature", "max_tokens", "seed"]) if (one[name] !== null) asked.push(`${name} ${one[name]}`);
  const attempts = one.attempts.map((each, place) =>
    make(
      "div",
      { class: "faulty" },
      make("p", {}, make("b", {}, `Attempt ${place + 1}: `), marked(each.error, sought), ` (${each.seconds.toFixed(2)} s)`),
      each.answer.text ? block("what came", each.answer, sought, all) : null,
      each.correction ? block("added to the last message of the next request", { text: each.correction, more: 0 }, sought, all) : null,
    ),
  );
  return [
    make("p", { class: "hint" }, `${one.at}, line ${one.number} of the transcript. Asked for ${asked.join(", ")}. ${one.cached ? "Nothing was sent: when it was paid for, it took" : "It took"} ${took(one)}${one.estimated ? " (estimated)" : ""}.`),
    ...one.messages.flatMap((message) => block(message.role, message, sought, all)),
    ...attempts,
    one.error ? make("p", { class: "faulty" }, make("b", {}, "No usable reply: "), marked(one.error, sought)) : null,
    ...(one.answer.text || !one.error ? block("reply", one.answer, sought, all) : []),
    ...one.notes.map((note) => make("p", { class: "soft" }, note)),
  ].flat().filter(Boolean);
}
