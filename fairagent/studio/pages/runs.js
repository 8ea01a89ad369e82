// The runs of a folder, and how far each has come; read anew while one is not done.

import { record } from "./ask.js";
import { make } from "./draw.js";

const PAUSE = 2000;

function row(run) {
  const name = run.page ? make("a", { href: `/runs/${encodeURIComponent(run.name)}`, target: "_blank", rel: "noopener" }, run.name) : run.name;
  if (run.fault) return make("tr", {}, make("th", { scope: "row" }, name), make("td", { colspan: 4, class: "down" }, run.fault));
  const bar = make("progress", { max: run.planned, value: run.outcomes, "aria-label": `${run.outcomes} of ${run.planned} outcomes` });
  const cells = [run.kind, run.systems.join(", "), String(run.topics)].map((text) => make("td", {}, text));
  return make("tr", {}, make("th", { scope: "row" }, name), cells, make("td", {}, bar, ` ${run.outcomes} of ${run.planned}`));
}

async function show() {
  const state = document.getElementById("state");
  let going = true;
  try {
    const { folder, runs } = await record("/api/runs");
    document.querySelector("#runs tbody").replaceChildren(...runs.map(row));
    document.getElementById("runs").hidden = !runs.length;
    state.textContent = runs.length ? `${runs.length} in ${folder}` : `No run in ${folder}; fairagent evaluate makes one.`;
    going = runs.some((run) => run.outcomes < run.planned);
  } catch (error) {
    state.textContent = error.message;
  }
  if (going) setTimeout(show, PAUSE);
}

show();
