// Drawing what comes of templates. Every text becomes a text node: nothing that a model replies is ever markup.

import { gapText, make, ranking } from "./draw.js";

export const message = (one) => make("div", { class: "message" }, make("h3", {}, one.role), make("pre", { tabindex: 0, "aria-label": `${one.role} message` }, one.text));

export function variable(one) {
  const name = make("th", { scope: "row" }, make("code", {}, one.name), one.required ? make("span", { class: "badge" }, "required") : null);
  return make("tr", {}, name, make("td", {}, one.meaning), make("td", {}, make("code", {}, one.example)));
}

export function diffed(line) {
  const head = line.startsWith("+++") || line.startsWith("---") || line.startsWith("@@");
  const kind = head ? "soft" : line.startsWith("+") ? "ins" : line.startsWith("-") ? "del" : "";
  return make("span", { class: kind }, `${line}\n`);
}

export function fault(one, open) {
  const said = one.line ? `line ${one.line}: ${one.message}` : one.message;
  return make("li", {}, one.line ? make("button", { type: "button", class: "plain", onclick: () => open(one.line) }, said) : said);
}

// Both versions on one topic, side by side; `names` are key -> name. Each side is filled when its reply has come.
export function pair(topic, query, names) {
  const sides = Object.fromEntries(Object.entries(names).map(([key, name]) => [key, side(key, name)]));
  const title = make("h3", {}, topic ? `${topic}: ${query}` : query);
  return { card: make("article", { class: "card pair" }, title, make("div", { class: "twin" }, Object.values(sides))), sides };
}

const side = (key, name) => make("section", { class: "side-of", "data-side": key, "aria-label": name }, make("h4", {}, name), make("p", { class: "soft" }, "…"));

// `alone`: it is one topic, whose rankings are open.
export function fillSide(section, one, alone, open) {
  const keywords = (one.rows ?? []).map((row) =>
    make("tr", {}, make("th", { scope: "row" }, row.what), make("td", { class: "n" }, row.value), make("td", {}, row.effect)),
  );
  const inside = [
    one.error ? make("p", { class: "notice" }, one.error) : null,
    one.about ? make("p", { class: "soft" }, one.about) : null,
    one.gap ? make("p", { class: "gap" }, `gap ${gapText(one.gap.before)} → `, make("b", {}, gapText(one.gap.after)), one.ndcg ? [`, ${one.ndcg.measure} ${one.ndcg.before.toFixed(4)} → `, make("b", {}, one.ndcg.after.toFixed(4))] : []) : null,
    keywords.length ? make("table", { class: "keywords" }, make("tbody", {}, keywords)) : null,
    one.end ? make("p", {}, one.end) : null,
    (one.replies ?? []).map((text) => make("pre", { tabindex: 0, "aria-label": `reply, ${section.getAttribute("aria-label")}` }, text)),
    one.usage ? make("p", { class: "hint" }, used(one)) : null,
    one.hits?.length ? make("details", { open: alone }, make("summary", {}, "Ranking"), make("div", { class: "sideways" }, ranking(`Ranking, ${section.getAttribute("aria-label")}`, one.hits, "engine_rank", open))) : null,
  ];
  section.replaceChildren(section.firstElementChild, ...inside.flat().filter(Boolean));
}

const used = (one) => `${one.usage.calls} ${one.usage.calls === 1 ? "call" : "calls"}, ${one.usage.input_tokens} tokens in, ${one.usage.output_tokens} out${one.cached ? ", from the cache" : ""}`;

// `names` are key -> name of the two sides, the first one first.
export function summary(found, names) {
  const of = `${found.tried.length} of ${found.of} tried.`;
  const { gaps, ndcg } = found;
  if (!gaps) return of;
  const [[left, first], [right, second]] = Object.entries(names);
  const words = `${of} Mean gap over ${topics(gaps.topics)}: ${first} ${gapText(gaps[left])}, ${second} ${gapText(gaps[right])}; lower with ${second} on ${gaps.lower}, higher on ${gaps.higher}.`;
  return ndcg ? `${words} Mean ${ndcg.measure} over ${topics(ndcg.topics)}: ${ndcg.before.toFixed(4)} before, ${first} ${ndcg[left].toFixed(4)}, ${second} ${ndcg[right].toFixed(4)}.` : words;
}

const topics = (count) => `${count} ${count === 1 ? "topic" : "topics"}`;
