// Both lists with their snippets and moves, and what was pushed down.

import { chips, make } from "./draw.js";

const FEW = 4;

export function ordinal(rank) {
  const ending = rank % 100 > 10 && rank % 100 < 14 ? "th" : (["th", "st", "nd", "rd"][rank % 10] ?? "th");
  return `${rank}${ending}`;
}

function moved(hit) {
  const was = hit.engine_rank;
  if (was === null) return make("span", { class: "move new" }, "new: the engine's list lacks it");
  if (was === hit.rank) return make("span", { class: "move" }, `stays ${ordinal(was)}`);
  return make("span", { class: `move ${was > hit.rank ? "rose" : "fell"}` }, `from ${ordinal(was)} to ${ordinal(hit.rank)}`);
}

function lands(hit, shown) {
  const now = hit.agent_rank;
  if (now === null) return make("span", { class: "move fell" }, `out of the first ${shown}`);
  if (now === hit.rank) return make("span", { class: "move" }, `stays ${ordinal(now)}`);
  return make("span", { class: `move ${now < hit.rank ? "rose" : "fell"}` }, `now ${ordinal(now)}`);
}

function list(hits, move, open, why = new Map()) {
  const rows = hits.map((hit) =>
    make(
      "li",
      { value: hit.rank, "data-id": hit.id },
      make("div", { class: "head" }, make("button", { type: "button", class: "plain", onclick: () => open(hit.id) }, hit.title || hit.id), move(hit)),
      hit.snippet ? make("p", { class: "snippet" }, hit.snippet) : null,
      make("p", { class: "of" }, chips(hit.groups)),
      why.has(hit.id) ? make("p", { class: "reason" }, `Why: ${why.get(hit.id)}.`) : null,
    ),
  );
  return make("ol", { class: "hits" }, rows);
}

export const agentList = (found, open) => list(found.hits, moved, open);
export function engineList(found, open) {
  const why = new Map(found.moves.pushed_down.filter((one) => one.now === null).map((one) => [one.id, one.reason]));
  return list(found.engine_hits, (hit) => lands(hit, found.hits.length), open, why);
}

// Documents with the same reason stand together; the first few documents are shown, the others folded.
export function pushedDown(found, open) {
  const fallen = found.moves.pushed_down;
  const left = fallen.filter((one) => one.now === null).length;
  const counted = [left ? `${left} left the first ${found.hits.length}` : "", fallen.length - left ? `${fallen.length - left} fell` : ""].filter(Boolean);
  if (!fallen.length) return [make("p", { class: "hint" }, "Nothing: no document of the engine's list fell.")];
  const rest = fallen.slice(FEW);
  return [
    make("p", { class: "hint" }, `Of the engine's first ${found.engine_hits.length} documents ${counted.join(", ")}.`),
    ...byReason(fallen.slice(0, FEW), open),
    rest.length ? make("details", { class: "more" }, make("summary", {}, `${rest.length} more`), byReason(rest, open)) : null,
  ].filter(Boolean);
}

function byReason(fallen, open) {
  const reasons = new Map();
  for (const one of fallen) reasons.set(one.reason, [...(reasons.get(one.reason) ?? []), one]);
  return [...reasons].map(([reason, some]) =>
    make(
      "div",
      { class: "why" },
      make("ul", {}, some.map((one) => make("li", { "data-id": one.id }, make("button", { type: "button", class: "plain", onclick: () => open(one.id) }, one.title || one.id), make("span", { class: "move" }, one.text)))),
      make("p", {}, `${reason[0].toUpperCase()}${reason.slice(1)}.`),
    ),
  );
}
