// The runs of a folder, and how far each has come; read anew while one is not done. Rows stay where they are, so that
// neither the focus nor what is ticked is lost.

import { record } from "./ask.js";
import { make } from "./draw.js";
import { many } from "./exchange.js";

const PAUSE = 2000;
const at = (id) => document.getElementById(id);
const rows = new Map();
const ticked = new Set();

const place = (name) => `/runs/${encodeURIComponent(name)}`;

const STATES = { done: "yes", running: "", "not finished": "no" };
const when = (text) => new Date(text).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });

function row(run) {
  const link = run.fault ? run.name : make("a", { href: `${place(run.name)}/topics` }, run.name);
  const about = run.fault ? null : make("small", {}, [run.title === run.name ? null : run.title, run.kind, many(run.topics, "topic")].filter(Boolean).join(", "));
  const name = make("th", { scope: "row" }, link, about);
  if (run.fault) return { element: make("tr", {}, name, make("td", { colspan: 7, class: "down" }, run.fault)), update: () => {} };
  const state = make("td", {});
  const best = make("td", { class: "best" });
  const cost = make("td", { class: "cost" });
  const page = make("td", {});
  const box = make("input", { type: "checkbox", "aria-label": `compare ${run.name}`, onchange: () => tick(run.name, box.checked) });
  const date = make("td", {}, make("time", { datetime: run.begun }, when(run.begun)));
  const element = make("tr", {}, name, make("td", {}, box), state, date, make("td", {}, run.systems.join(", ")), best, cost, page);
  let before = "";
  const update = (now) => {
    // Drawn anew only where it has changed: what is marked or focused stays.
    if (JSON.stringify(now) === before) return;
    before = JSON.stringify(now);
    state.replaceChildren(...stateOf(now));
    best.replaceChildren(...(now.best.length ? now.best.map((one) => bestOf(one, now)) : [make("span", { class: "soft" }, "–")]));
    cost.replaceChildren(...costOf(now.cost));
    if (now.page && !page.firstChild) page.append(make("a", { href: place(now.name), target: "_blank", rel: "noopener", "aria-label": `page of ${now.name}` }, "page"));
  };
  return { element, update };
}

function stateOf(run) {
  const count = `${run.outcomes.toLocaleString("en")} of ${run.planned.toLocaleString("en")}`;
  return [
    make("span", { class: `badge ${STATES[run.state]}` }, run.state),
    run.state === "done" ? null : make("progress", { max: run.planned, value: run.outcomes, "aria-label": `${count} outcomes of ${run.name}` }),
    make("small", {}, run.state === "done" ? "" : count, run.failed ? make("span", { class: "down" }, ` ${run.failed} failed`) : ""),
  ].filter(Boolean);
}

function bestOf(one, run) {
  const beside = one.system === run.baseline ? ", the baseline" : `, ${run.baseline} ${one.baseline.toFixed(4)}`;
  const of = `${one.measure}${one.dimension ? `, ${one.dimension}` : ""}${run.state === "done" ? "" : `, ${many(one.topics, "topic")} so far`}`;
  return make("div", { title: one.definition }, make("b", {}, one.system), ` ${one.mean.toFixed(4)}`, make("small", {}, `${of}${beside}`));
}

function costOf(cost) {
  if (!cost.calls) return [make("span", { class: "soft" }, "no model asked")];
  const money = cost.cost === null ? "price unknown" : `$${cost.cost.toFixed(cost.cost < 1 ? 4 : 2)}`;
  const tokens = `${(cost.input_tokens + cost.output_tokens).toLocaleString("en")} tokens`;
  return [many(cost.calls, "call"), make("small", {}, `${tokens}, ${money}`)];
}

function tick(name, on) {
  if (on) ticked.add(name);
  else ticked.delete(name);
  document.querySelector("#compare button").disabled = ticked.size !== 2;
}

at("compare").addEventListener("submit", (event) => {
  event.preventDefault();
  // The one that was begun first is the left one.
  const [right, left] = [...rows.keys()].map((key) => key.split("\n")[0]).filter((name) => ticked.has(name));
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
    at("note").hidden = !runs.some((run) => run.best?.length);
    at("compare").hidden = runs.filter((run) => !run.fault).length < 2;
    at("state").textContent = runs.length ? `${many(runs.length, "run")} in the folder ${folder}` : `No run in ${folder}; fairagent evaluate makes one.`;
    going = runs.some((run) => run.outcomes < run.planned);
  } catch (error) {
    at("state").textContent = error.message;
  }
  if (going) setTimeout(show, PAUSE);
}

show();
