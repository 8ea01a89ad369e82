// Two runs side by side. What is shown is what its address says: left, right.

import { record } from "./ask.js";
import { make } from "./draw.js";

const at = (id) => document.getElementById(id);
const topics = (run) => `/runs/${encodeURIComponent(run)}/topics`;

function number(value) {
  return value === null ? "–" : value.toFixed(4);
}

function row(one) {
  const kind = one.neutral || !one.wins && !one.losses ? "" : one.better > 0 ? " up" : one.better < 0 ? " down" : "";
  const sign = one.difference > 0 ? "+" : "";
  const cells = [number(one.left), number(one.right), `${sign}${number(one.difference)}`, one.p === null ? "–" : one.p < 0.001 ? "<0.001" : one.p.toFixed(3), `${one.wins} / ${one.ties} / ${one.losses}`, String(one.topics)];
  return make(
    "tr",
    {},
    make("th", { scope: "row" }, one.system),
    make("td", {}, one.dimension || "relevance"),
    make("td", { title: one.definition }, one.measure),
    cells.map((text, place) => make("td", { class: `n${place === 2 ? kind : ""}` }, text)),
  );
}

function show(found) {
  const heads = ["system", "dimension", "measure", found.left, found.right, "difference", "p", "better / same / worse", "topics"].map((name) => make("th", { scope: "col" }, name));
  const table = make("table", {}, make("thead", {}, make("tr", {}, heads)), make("tbody", {}, found.rows.map(row)));
  const notes = [];
  if (!found.rows.length) notes.push("No system of both runs has answered a topic in both by a measure of both.");
  if (found.only_left.length) notes.push(`Only in ${found.left}: ${found.only_left.join(", ")}.`);
  if (found.only_right.length) notes.push(`Only in ${found.right}: ${found.only_right.join(", ")}.`);
  const [first, second] = found.collections;
  if (first !== second) notes.push(`The collections differ (${first}, ${second}): topics of the same id may be others.`);
  at("rows").replaceChildren(
    ...(found.rows.length ? [make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "The comparison" }, table)] : []),
    ...notes.map((note) => make("p", { class: "hint" }, note)),
    make("p", {}, make("a", { href: `${topics(found.left)}?${new URLSearchParams({ with: found.right })}` }, "Topic by topic, side by side")),
  );
  const lines = found.differences.map((line) => make("li", {}, make("code", {}, line)));
  at("made").replaceChildren(lines.length ? make("ul", {}, lines) : make("p", {}, "The systems of both runs were made from the same."));
  at("found").hidden = false;
}

async function compare() {
  const now = new URLSearchParams(location.search);
  const pair = { left: now.get("left") ?? "", right: now.get("right") ?? "" };
  for (const side of ["left", "right"]) at(side).value = pair[side];
  at("found").hidden = true;
  at("error").replaceChildren();
  at("state").textContent = pair.left && pair.right ? "Comparing …" : "Choose two runs.";
  if (!pair.left || !pair.right) return;
  document.title = `${pair.left} and ${pair.right}: fairagent studio`;
  try {
    show(await record(`/api/compared?${new URLSearchParams(pair)}`));
    at("state").textContent = `${pair.right} compared to ${pair.left}.`;
  } catch (error) {
    at("state").textContent = "";
    at("error").replaceChildren(make("p", { class: "notice" }, error.message));
  }
}

at("choose").addEventListener("change", () => {
  history.pushState(null, "", `?${new URLSearchParams({ left: at("left").value, right: at("right").value })}`);
  compare();
});
addEventListener("popstate", compare);

try {
  const { runs } = await record("/api/runs");
  const names = runs.filter((run) => !run.fault).map((run) => run.name);
  for (const side of ["left", "right"]) at(side).replaceChildren(make("option", { value: "" }, "choose"), ...names.map((name) => make("option", { value: name }, name)));
  compare();
} catch (error) {
  at("state").textContent = error.message;
}
