// Both lists with their snippets and moves, and what was pushed down.

import { chips, make, percent } from "./draw.js";

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

// A document without a title is called by its first words, which are not said again.
const said = ({ name, title, snippet }) => (name === title || !snippet.startsWith(name) ? snippet : snippet.slice(name.length).trim());

function list(hits, move, open, why = new Map()) {
  const rows = hits.map((hit) =>
    make(
      "li",
      { value: hit.rank, "data-id": hit.id },
      make("div", { class: "head" }, make("button", { type: "button", class: "plain", onclick: () => open(hit.id) }, hit.name), move(hit)),
      said(hit) ? make("p", { class: "snippet" }, said(hit)) : null,
      make("p", { class: "of" }, chips(hit.groups)),
      why.has(hit.id) ? make("p", { class: "reason" }, `Why: ${why.get(hit.id)}.`) : null,
    ),
  );
  return make("ol", { class: "hits" }, rows);
}

export const agentList = (found, open) => list(found.hits, moved, open);
export function engineList(found, open) {
  const why = new Map(fallen(found).filter((one) => one.now === null).map((one) => [one.id, one.reason]));
  return list(found.engine_hits, (hit) => lands(hit, found.hits.length), open, why);
}

// The documents of the engine's list that left or fell, those first that left, then those that fell furthest.
export function fallen(found) {
  const fell = found.engine_hits.filter((hit) => hit.agent_rank === null || hit.agent_rank > hit.rank);
  const by = (hit) => (hit.agent_rank === null ? Infinity : hit.agent_rank - hit.rank);
  return fell
    .sort((a, b) => (by(a) === by(b) ? a.rank - b.rank : by(b) - by(a)))
    .map((hit) => ({
      id: hit.id,
      name: hit.name,
      now: hit.agent_rank,
      text: `${ordinal(hit.rank)} → ${hit.agent_rank === null ? `out of the first ${found.hits.length}` : ordinal(hit.agent_rank)}`,
      reason: reason(hit, found.exposure),
    }));
}

// The group of a document that had most more than its target, or that documents without a label had.
function reason(hit, { before, after }) {
  const rows = before.flatMap((was, number) => {
    const now = after[number];
    const theirs = hit.groups[was.dimension];
    if (!theirs) return [[was.unknown, now.unknown, now.unknown_target, `it has no label in ${was.dimension}: such documents`]];
    return was.groups.flatMap((one, place) => (one.label in theirs ? [[one.share, now.groups[place].share, one.target, `its group (${one.label})`]] : []));
  });
  const [had, has, due, whose] = rows.filter((row) => row[2] !== null).sort((a, b) => b[0] - b[2] - (a[0] - a[2]))[0] ?? [0, 0, 0, ""];
  if (had - due < 0.01) return "others came up that are about as relevant, or of a group that lacks attention";
  return `${whose} had ${percent(had)} of the attention and has ${percent(has)}, target ${percent(due)}`;
}

// Documents with the same reason stand together; the first few documents are shown, the others folded.
export function pushedDown(found, open) {
  const all = fallen(found);
  const left = all.filter((one) => one.now === null).length;
  const counted = [left ? `${left} left the first ${found.hits.length}` : "", all.length - left ? `${all.length - left} fell` : ""].filter(Boolean);
  if (!all.length) return [make("p", { class: "hint" }, "Nothing: no document of the engine's list fell.")];
  const rest = all.slice(FEW);
  return [
    make("p", { class: "hint" }, `Of the engine's first ${found.engine_hits.length} documents ${counted.join(", ")}.`),
    ...byReason(all.slice(0, FEW), open),
    rest.length ? make("details", { class: "more" }, make("summary", {}, `${rest.length} more`), byReason(rest, open)) : null,
  ].filter(Boolean);
}

function byReason(some, open) {
  const reasons = new Map();
  for (const one of some) reasons.set(one.reason, [...(reasons.get(one.reason) ?? []), one]);
  return [...reasons].map(([reason, alike]) =>
    make(
      "div",
      { class: "why" },
      make("ul", {}, alike.map((one) => make("li", { "data-id": one.id }, make("button", { type: "button", class: "plain", onclick: () => open(one.id) }, one.name), make("span", { class: "move" }, one.text)))),
      make("p", {}, `${reason[0].toUpperCase()}${reason.slice(1)}.`),
    ),
  );
}
