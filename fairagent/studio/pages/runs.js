// The runs of a folder, and how far each has come; read anew while one is not done. Rows stay where they are, so that
// neither the focus nor what is ticked is lost.

import { record } from "./ask.js";
import { make } from "./draw.js";

const PAUSE = 2000;
const at = (id) => document.getElementById(id);
const rows = new Map();
const ticked = new Set();

const place = (name) => `/runs/${encodeURIComponent(name)}`;

function row(run) {
  const name = make("th", { scope: "row" }, run.fault ? run.name : make("a", { href: `${place(run.name)}/topics` }, run.name));
  if (run.fault) return { element: make("tr", {}, name, make("td", { colspan: 6, class: "down" }, run.fault)), update: () => {} };
  const bar = make("progress", {});
  const words = make("span", {});
  const page = make("td", {});
  const box = make("input", { type: "checkbox", "aria-label": `compare ${run.name}`, onchange: () => tick(run.name, box.checked) });
  const cells = [run.kind, run.systems.join(", "), String(run.topics)].map((text) => make("td", {}, text));
  const element = make("tr", {}, name, make("td", {}, box), make("td", {}, bar, " ", words), cells, page);
  const update = (now) => {
    bar.max = now.planned;
    bar.value = now.outcomes;
    words.textContent = `${now.outcomes} of ${now.planned}`;
    bar.setAttribute("aria-label", `${words.textContent} outcomes of ${now.name}`);
    if (now.page && !page.firstChild) page.append(make("a", { href: place(now.name), target: "_blank", rel: "noopener", "aria-label": `page of ${now.name}` }, "page"));
  };
  return { element, update };
}

function tick(name, on) {
  if (on) ticked.add(name);
  else ticked.delete(name);
  document.querySelector("#compare button").disabled = ticked.size !== 2;
}

at("compare").addEventListener("submit", (event) => {
  event.preventDefault();
  // In the order of the table.
  const [left, right] = [...rows.keys()].map((key) => key.split("\n")[0]).filter((name) => ticked.has(name));
  location.href = `/compare?${new URLSearchParams({ left, right })}`;
});

async function show() {
  let going = true;
  try {
    const { folder, runs } = await record("/api/runs");
    const now = runs.map((run) => [`${run.name}\n${run.fault ?? ""}`, run]);
    for (const [key, run] of now) {
      if (!rows.has(key)) rows.set(key, row(run));
      rows.get(key).update(run);
    }
    const keys = now.map(([key]) => key);
    if (keys.join("\0") !== [...rows.keys()].join("\0") || !document.querySelector("#runs tbody").children.length) {
      const kept = keys.map((key) => [key, rows.get(key)]);
      rows.clear();
      for (const [key, one] of kept) rows.set(key, one);
      document.querySelector("#runs tbody").replaceChildren(...kept.map(([, one]) => one.element));
    }
    at("runs").hidden = !runs.length;
    at("compare").hidden = runs.filter((run) => !run.fault).length < 2;
    at("state").textContent = runs.length ? `${runs.length} in ${folder}` : `No run in ${folder}; fairagent evaluate makes one.`;
    going = runs.some((run) => run.outcomes < run.planned);
  } catch (error) {
    at("state").textContent = error.message;
  }
  if (going) setTimeout(show, PAUSE);
}

show();
