// The page before there is a query: what the collection holds, and queries to begin with.

import { color, make, percent, svg } from "./draw.js";

const MOST = 8;

function composition(one) {
  const rows = [...one.groups].sort((a, b) => b.share - a.share);
  const rest = rows.slice(MOST);
  const full = Math.max(one.unknown, ...rows.map((row) => row.share), 0.01);
  const line = (row) =>
    make(
      "div",
      { class: "group" },
      make("span", { class: "who", title: row.label }, row.label),
      svg(
        "svg",
        { viewBox: "0 0 100 22", preserveAspectRatio: "none", "aria-hidden": "true" },
        svg("rect", { class: "track", width: 100, height: 22 }),
        svg("rect", { class: row.none ? "bu" : `b${color(one.dimension, row.label)}`, y: 4, width: (100 * row.share) / full, height: 14 }),
      ),
      make("span", { class: "n" }, make("b", {}, percent(row.share))),
    );
  const about = [one.predicted ? "Labels are predicted." : "", one.oracle ? "Labels come from the judgments, and are of judged documents." : ""].filter(Boolean).join(" ");
  return make(
    "div",
    { class: "card" },
    make("h3", {}, one.dimension, make("small", {}, `${one.groups.length} groups`)),
    make("div", { class: "groups" }, rows.slice(0, MOST).map(line), line({ label: "no label", share: one.unknown, none: true })),
    rest.length ? make("details", { class: "more" }, make("summary", {}, `${rest.length} more groups`), make("div", { class: "groups" }, rest.map(line))) : null,
    about ? make("p", { class: "fine" }, about) : null,
  );
}

// `held` is the record of /api/contents; `ask` opens a search for an example.
export function start(place, name, held, ask) {
  const count = held.documents.toLocaleString("en");
  const what = held.passages ? "passages" : "documents";
  const examples = held.examples.map((one) =>
    make("li", {}, make("button", { type: "button", class: "example", onclick: () => ask(one) }, one.query)),
  );
  place.replaceChildren(
    make("h2", { id: "h-start" }, make("b", {}, name), ` holds ${held.exact ? "" : "about "}${count} ${what}`),
    examples.length ? make("div", { class: "tryout" }, make("p", { id: "try-these" }, "Try one of these"), make("ul", { "aria-labelledby": "try-these" }, examples)) : "",
    held.dimensions.length
      ? make("div", { class: "holds" }, held.dimensions.map(composition))
      : make("p", { class: "notice" }, "Its documents have no groups: searches work, but there is nobody to be fair to. Name columns with groups in the collection's file (`fairagent init` looks for them)."),
  );
}
