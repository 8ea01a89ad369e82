// The verdict: what the search changes for the groups, a card a dimension, with bars from before to after to target.

import { color, gapText, make, percent, renew, svg } from "./draw.js";

const NO_LABEL = "no label (of all)";
const SCALES = [0.05, 0.1, 0.2, 0.25, 0.4, 0.5, 0.75, 1];

// As `exposure_rows`: the documents without a label are the last row, whose target may be none.
const rowsOf = (one) => [...one.groups, { label: NO_LABEL, share: one.unknown, target: one.unknown_target, none: true }];

// Sentences have the dimension first; its name is the card's heading.
function said(change) {
  const start = `${change.dimension}${change.worse ? " is less fair" : ""}: `;
  const rest = change.text.startsWith(start) ? change.text.slice(start.length) : change.text;
  return rest.split(/(<?\d+%)/).map((piece, place) => (place % 2 ? make("b", {}, piece) : piece));
}

// How many groups' bars a card shows by itself: the first screen has them all.
const shown = (dimensions) => (dimensions > 2 ? 2 : dimensions > 1 ? 4 : 6);

// A card. Before and target do not change while the slider moves, so neither do the rows that are chosen by them.
function card(change, before, after, target, most) {
  const were = rowsOf(before);
  const rows = rowsOf(after)
    .map((row, place) => ({ ...row, was: were[place].share }))
    .filter((row) => !row.none || row.was || row.share || row.target);
  const full = Math.max(...rows.flatMap((row) => [row.share, row.was, row.target ?? 0]), 0.01);
  const scale = SCALES.find((one) => one >= full - 1e-9) ?? 1;
  const off = (row) => (row.label === change?.label ? 9 : row.none ? 8 : Math.abs((row.target ?? 0) - row.was));
  const far = [...rows].sort((a, b) => off(b) - off(a)).slice(0, rows.length === most + 2 ? most + 2 : most + 1);
  const rest = rows.filter((row) => !far.includes(row));
  // All in their own order, or the farthest from their targets first.
  const first = rest.length ? [...far.filter((row) => !row.none), ...far.filter((row) => row.none)] : rows;
  const draw = (row) => bar(after.dimension, row, scale);
  return make(
    "div",
    { class: `card${change?.worse ? " worsened" : ""}`, "data-id": after.dimension },
    make("h3", {}, after.dimension, change?.worse ? make("strong", { class: "worse" }, "less fair than before") : null),
    change ? make("p", { class: "said" }, said(change)) : null,
    make("div", { class: "groups" }, first.map(draw)),
    rest.length
      ? make("details", { class: "more" }, make("summary", {}, `${rest.length} more ${rest.length === 1 ? "group" : "groups"}`), make("div", { class: "groups" }, rest.map(draw)))
      : null,
    make("p", { class: "fine" }, `gap ${gapText(before.divergence)} → ${gapText(after.divergence)}, target: ${target}`),
  );
}

function bar(dimension, row, scale) {
  const due = row.target === null ? "–" : percent(row.target);
  const words = `${row.label}: ${percent(row.was)} by the engine, ${percent(row.share)} by the agent, target ${due}`;
  const fill = row.none ? "bu" : `b${color(dimension, row.label)}`;
  const at = (share) => Math.min(100, (100 * share) / scale);
  return make(
    "div",
    { class: "group" },
    make("span", { class: "who", title: row.label }, row.label),
    svg(
      "svg",
      { viewBox: "0 0 100 22", preserveAspectRatio: "none", role: "img", "aria-label": words },
      svg("rect", { class: "track", width: 100, height: 22 }),
      svg("rect", { class: `${fill} faint`, y: 2, width: at(row.was), height: 6 }),
      svg("rect", { class: fill, y: 10, width: at(row.share), height: 10 }),
      row.target === null ? null : svg("line", { class: "tick", x1: at(row.target), x2: at(row.target), y1: 0, y2: 22 }),
    ),
    make("span", { class: "n", "aria-hidden": "true" }, `${percent(row.was)} → `, make("b", {}, percent(row.share))),
    make("span", { class: "due", "aria-hidden": "true" }, due === "–" ? "no target" : `target ${due}`),
  );
}

// The cards of a found record: those dimensions first that became worse.
export function verdict(found, place) {
  const { before, after } = found.exposure;
  place.classList.toggle("alone", after.length === 1);
  renew(
    place,
    after.map((one, number) => card(found.changes[number], before[number], one, found.targets[one.dimension], shown(after.length))),
  );
}

export const sentences = (found) => found.changes.map((one) => one.text).join(". ");
