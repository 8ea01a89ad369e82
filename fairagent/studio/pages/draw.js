// Drawing records. Every text becomes a text node: nothing that a document says is ever markup.

const SVG = "http://www.w3.org/2000/svg";
const COLORS = 12;
const palette = new Map();

export function make(tag, about = {}, ...inside) {
  return fill(document.createElement(tag), about, inside);
}

export function svg(tag, about = {}, ...inside) {
  return fill(document.createElementNS(SVG, tag), about, inside);
}

function fill(element, about, inside) {
  for (const [name, value] of Object.entries(about)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...inside.flat().filter((one) => one !== null && one !== undefined));
  return element;
}

// What is drawn anew in the place of what was drawn before: what is the same stays, since to lay out a page takes longer
// than to make its elements. Elements with the same `data-id` are the same thing; what is unfolded stays so.
export function renew(place, ...inside) {
  const given = inside.flat().filter((one) => one !== null && one !== undefined);
  const fresh = given.map((one) => (one.nodeType ? one : document.createTextNode(one)));
  const named = new Map([...place.children].filter((one) => one.dataset.id).map((one) => [one.dataset.id, one]));
  const wanted = new Set(fresh.map((one) => one.dataset?.id));
  for (const [id, one] of named) if (!wanted.has(id)) one.remove();
  let here = place.firstChild;
  for (const one of fresh) {
    const id = one.dataset?.id;
    const old = id ? named.get(id) : here;
    const like = old && old.nodeName === one.nodeName && old.dataset?.id === id;
    if (like && old !== here) place.insertBefore(old, here);
    if (like) changed(old, one);
    else if (here && !here.dataset?.id) here.replaceWith(one);
    else place.insertBefore(one, here);
    here = (like ? old : one).nextSibling;
  }
  while (here) {
    const next = here.nextSibling;
    here.remove();
    here = next;
  }
}

function changed(old, one) {
  if (old.isEqualNode(one)) return;
  if (!old.attributes) {
    old.data = one.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (!one.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  for (const { name, value } of one.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  renew(old, [...one.childNodes]);
}

export function setPalette(dimensions) {
  let number = 0;
  for (const [dimension, labels] of Object.entries(dimensions)) {
    for (const label of labels) palette.set(`${dimension}\n${label}`, number++ % COLORS);
  }
}

export const color = (dimension, label) => palette.get(`${dimension}\n${label}`) ?? "u";
export const percent = (share) => (share > 0 && share < 0.005 ? "<1%" : `${Math.round(100 * share)}%`);
export const gapText = (gap) => gap.toFixed(4);

export function chips(groups) {
  return Object.entries(groups).flatMap(([dimension, shares]) => {
    const unequal = new Set(Object.values(shares)).size > 1;
    return Object.entries(shares).map(([label, share]) =>
      make("span", { class: `g g${color(dimension, label)}`, title: dimension }, unequal ? `${label} ${percent(share)}` : label),
    );
  });
}

function move(rank, other, elsewhere) {
  if (other === null) return make("td", { title: elsewhere }, "–");
  const by = other - rank;
  if (!by) return make("td", { title: "the same rank in both" }, "=");
  const arrow = by > 0 ? "▲" : "▼";
  return make("td", { class: by > 0 ? "rose" : "fell", title: `rank ${other} in the other list` }, `${arrow}${Math.abs(by)}`);
}

// `other` is the key of a hit's rank in the other list; moves are shown from the engine's list to the agent's.
export function ranking(caption, hits, other, open) {
  const moved = other === "engine_rank";
  const rows = hits.map((hit) =>
    make(
      "tr",
      {},
      make("td", {}, String(hit.rank)),
      moved ? move(hit.rank, hit[other], "the engine did not find it") : there(hit[other]),
      make("td", {}, make("button", { type: "button", class: "plain", onclick: () => open(hit.id) }, hit.name)),
      make("td", {}, chips(hit.groups)),
    ),
  );
  const head = ["rank", moved ? "moved" : "agent", "document", "groups"].map((name) => make("th", { scope: "col" }, name));
  return make("table", { class: "ranking" }, make("caption", {}, caption), make("thead", {}, make("tr", {}, head)), make("tbody", {}, rows));
}

const there = (rank) => make("td", { title: rank === null ? "not in the agent's list" : "rank in the agent's list" }, rank === null ? "–" : String(rank));

// `full` is the gap of a whole bar.
export function step(one, full) {
  const title = one.aim ? `${one.source} for ${one.aim.label} (${one.aim.dimension})` : one.source;
  const share = full ? Math.min(1, one.gap / full) : 1;
  const verdict = one.accepted ? null : make("p", { class: "soft" }, `not kept: ${one.reason || "the gap did not fall"}`);
  const worse = one.worse.length ? make("p", { class: "fell" }, `less fair in ${one.worse.join(", ")}`) : null;
  const entered = one.entered ? make("p", { class: "soft" }, `${one.entered} documents from the whole collection`) : null;
  const added = one.added.map((term) => make("span", { class: "term" }, term.text, make("small", {}, term.weight.toFixed(2))));
  // Of an action: what would be served without it.
  const was = one.was === null ? "" : `, was ${gapText(one.was)}`;
  const dropped = one.dropped.map((word) => make("del", { title: "not in the index" }, word));
  const refused = one.refused.map((word) => make("del", { title: "no keyword" }, word));
  return make(
    "li",
    { class: one.accepted ? "" : "refused" },
    make(
      "div",
      {},
      make("p", {}, make("b", {}, title), one.why ? ` ${one.why}` : ""),
      verdict,
      worse,
      entered,
      added.length ? make("p", { class: "terms" }, "added: ", added) : null,
      dropped.length || refused.length ? make("p", {}, "dropped: ", dropped, refused) : null,
      one.notes.map((note) => make("p", { class: "soft" }, note)),
    ),
    make(
      "div",
      {},
      make("p", { class: "gap" }, "gap ", make("b", {}, gapText(one.gap)), `${was}, ${one.retrieved} documents`),
      Number.isFinite(one.objective?.after) && Number.isFinite(one.objective.before) ? make("p", { class: "soft" }, `J ${one.objective.after.toFixed(4)}, was ${one.objective.before.toFixed(4)}`) : null,
      svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" }, svg("rect", { class: "gapbar", width: 100 * share, height: 10 })),
    ),
  );
}

// The answer's text, in which [1] leads to source 1.
export function cited(text, sources) {
  return text.split(/(\[\d+\])/).map((piece) => {
    const number = /^\[(\d+)\]$/.exec(piece)?.[1];
    return number && number <= sources ? make("a", { href: `#source-${number}` }, piece) : piece;
  });
}

// What the groups get of the ranking, the context and the citations (those that are known), a table a dimension.
export function carried(lists, gaps) {
  const names = Object.keys(lists).filter((name) => lists[name].length);
  const first = lists[names[0]] ?? [];
  const gap = names.filter((name) => gaps[name] !== undefined).map((name) => `${gapText(gaps[name])} (${name})`).join(", ");
  const row = (one, place, label, pick) => {
    const shares = names.map((name) => make("td", { class: "number" }, percent(pick(lists[name][place])[0])));
    const due = pick(one)[1];
    return make("tr", {}, make("th", { scope: "row" }, label), shares, make("td", { class: "number" }, due === null ? "–" : percent(due)));
  };
  const tables = first.map((one, place) =>
    make(
      "table",
      { class: "carried" },
      make("caption", {}, one.dimension),
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "group"), [...names, "target"].map((name) => make("th", { scope: "col", class: "number" }, name)))),
      make(
        "tbody",
        {},
        one.groups.map((group, at) => row(one, place, group.label, (of) => [of.groups[at].share, of.groups[at].target])),
        one.unknown || one.unknown_target ? row(one, place, "no label (of all)", (of) => [of.unknown, of.unknown_target]) : null,
      ),
    ),
  );
  const least = gaps.least === undefined ? "" : `; as many of the candidates can reach ${gapText(gaps.least)}`;
  return tables.length && gap ? [make("p", { class: "soft" }, `Gap to the target: ${gap}${least}`), ...tables] : tables;
}

export function sources(answer, open) {
  const items = answer.context.map((hit) =>
    make(
      "li",
      { id: `source-${hit.number}`, class: hit.cited || hit.weight ? "" : "gone" },
      make("button", { type: "button", class: "plain", onclick: () => open(hit.id) }, hit.name),
      " ",
      chips(hit.groups),
      hit.cited ? make("span", { class: "badge yes" }, "cited") : null,
    ),
  );
  const removed = (answer.verdicts ?? []).filter((verdict) => !verdict.kept);
  const lost = answer.removed.filter((one) => one.share > 0).map((one) => `${one.label} (${one.dimension}) ${percent(one.share)} of ${one.seen}`);
  const words = answer.verdicts ? `The filter took ${removed.length} of ${answer.verdicts.length} documents${lost.length ? `: ${lost.join(", ")}` : ""}.` : null;
  return [
    items.length ? make("ol", {}, items) : null,
    words ? make("p", {}, words) : null,
    removed.length ? make("ul", {}, removed.map((one) => make("li", {}, make("button", { type: "button", class: "plain", onclick: () => open(one.id) }, one.id), ` ${one.note}`))) : null,
    answer.notes.map((note) => make("p", { class: "hint" }, note)),
  ].flat().filter(Boolean);
}
