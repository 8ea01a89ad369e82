// The runs of a folder, each with a link to the page that it has made of itself.

import { record } from "./ask.js";
import { make } from "./draw.js";

const at = (id) => document.getElementById(id);
const many = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
const when = (text) => new Date(text).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });

function row(run) {
  const link = run.page ? make("a", { href: `/runs/${encodeURIComponent(run.name)}` }, run.name) : run.name;
  if (run.fault) return make("tr", {}, make("th", { scope: "row" }, link), make("td", { colspan: 3, class: "down" }, run.fault));
  const about = [run.title === run.name ? null : run.title, run.kind, many(run.topics, "topic")].filter(Boolean).join(", ");
  return make(
    "tr",
    {},
    make("th", { scope: "row" }, link, make("small", {}, about)),
    make("td", {}, run.running ? make("span", { class: "badge" }, "running") : run.page ? "has its page" : "no page yet"),
    make("td", {}, make("time", { datetime: run.begun }, when(run.begun))),
    make("td", {}, run.systems.join(", ")),
  );
}

try {
  const { folder, runs } = await record("/api/runs");
  document.querySelector("#runs tbody").replaceChildren(...runs.map(row));
  at("runs").hidden = !runs.length;
  at("state").textContent = runs.length ? `${many(runs.length, "run")} in the folder ${folder}` : `No run in ${folder}; fairagent evaluate makes one.`;
} catch (error) {
  at("state").textContent = error.message;
}
