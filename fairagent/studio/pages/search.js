// The search page. What is shown is what its address says: q, topic, do=answer, doc, and the settings that differ.

import { events, record } from "./ask.js";
import { cited, dimension, make, ranking, setPalette, sources, step } from "./draw.js";

const at = (id) => document.getElementById(id);
const put = (id, ...inside) => at(id).replaceChildren(...inside.flat().filter((one) => one !== null));
const SECTIONS = ["answered", "lists", "exposed", "story", "again"];
let about;
let asking = new AbortController();

// --- the address -----------------------------------------------------------------------------------------------------

function written() {
  const state = new URLSearchParams();
  if (at("q").value.trim()) state.set("q", at("q").value.trim());
  if (at("topic").value) state.set("topic", at("topic").value);
  for (const [name, value] of Object.entries(choices())) state.set(name, Array.isArray(value) ? value.join("\n") : value);
  return state;
}

function read() {
  const state = new URLSearchParams(location.search);
  at("q").value = state.get("q") ?? "";
  at("topic").value = state.get("topic") ?? "";
  for (const control of about.controls) {
    const given = state.get(control.name);
    if (control.type === "array") {
      const chosen = given === null ? control.value : given.split("\n");
      for (const box of boxes(control.name)) box.checked = !chosen.length || chosen.includes(box.value);
    } else at(`set-${control.name}`).value = given ?? control.value;
    mark(control);
  }
  return state;
}

function go(state) {
  if (`?${state}` !== location.search) history.pushState(null, "", state.size ? `?${state}` : "/");
  show();
}

// --- the settings ----------------------------------------------------------------------------------------------------

const boxes = (name) => [...document.querySelectorAll(`input[name="set-${name}"]`)];

function control(one) {
  const hint = one.meaning;
  if (one.type === "array") {
    const options = Object.keys(about.dimensions).map((name) =>
      make("label", {}, make("input", { type: "checkbox", name: `set-${one.name}`, value: name, onchange: () => mark(one) }), name),
    );
    return make("fieldset", { title: hint }, make("legend", { id: `name-${one.name}` }, one.name), options);
  }
  const id = `set-${one.name}`;
  const values = one.enum?.includes(one.value) || !one.enum ? one.enum : [one.value, ...one.enum];
  const field = values
    ? make("select", { id, onchange: () => mark(one) }, values.map((value) => make("option", { value }, value === "" ? "the collection's" : value)))
    : make("input", { id, type: "number", min: one.minimum, max: one.maximum, oninput: () => mark(one) });
  return make("label", { title: hint }, make("span", { id: `name-${one.name}` }, one.name), field);
}

function chosen(one) {
  if (one.type === "array") {
    const all = boxes(one.name);
    const names = all.filter((box) => box.checked).map((box) => box.value);
    const before = one.value.length ? one.value : all.map((box) => box.value);
    return !names.length || names.join() === before.join() ? null : names;
  }
  const { value } = at(`set-${one.name}`);
  if (value === "" || value === String(one.value)) return null;
  return one.type === "integer" ? Number(value) : value;
}

const mark = (one) => at(`name-${one.name}`).classList.toggle("set", chosen(one) !== null);

function choices() {
  return Object.fromEntries(about.controls.map((one) => [one.name, chosen(one)]).filter(([, value]) => value !== null));
}

// --- what is shown ---------------------------------------------------------------------------------------------------

async function show() {
  const state = read();
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  const body = { query: at("q").value.trim(), topic: at("topic").value, settings: choices() };
  put("error");
  for (const id of SECTIONS) at(id).hidden = true;
  if (!body.query && !body.topic) {
    at("state").textContent = "Type what to search for.";
    if (state.get("doc")) await openDocument(state.get("doc"));
    return;
  }
  document.title = `${body.query || body.topic}: fairagent studio`;
  const answers = state.get("do") === "answer";
  at("state").textContent = answers ? "Searching, then answering …" : "Searching …";
  put("steps");
  put("answer-text");
  put("sources");
  const started = performance.now();
  let first = null;
  const on = (kind, said) => {
    if (kind === "step") {
      first ??= said.gap;
      at("story").hidden = false;
      at("steps").append(step(said, first));
    } else {
      at("answered").hidden = false;
      at("answer-text").append(said.text);
    }
  };
  try {
    const found = await events(answers ? "/api/answer" : "/api/search", body, on, signal);
    if (answers) showAnswer(found);
    showSearch(answers ? found.search : found);
    at("state").textContent = `Done in ${((performance.now() - started) / 1000).toFixed(2)} s.`;
    await showRecipes(body, answers, signal);
    if (state.get("doc")) await openDocument(state.get("doc"));
  } catch (error) {
    if (signal.aborted) return;
    at("state").textContent = at("answer-text").textContent ? "Ended before the answer was whole." : "Nothing was found.";
    put("error", make("p", { class: "notice" }, error.message));
  }
}

function showSearch(found) {
  const { before, after } = found.exposure;
  at("lists").hidden = false;
  put("alarms", [...found.alarms, ...found.notes].map((text) => make("p", { class: "notice" }, text)), found.oracle ? make("p", { class: "notice" }, "ORACLE: a target or the groups came from the relevance judgments.") : []);
  const nothing = make("p", {}, "Nothing was found: no word of the query occurs in the index.");
  put("engine-list", found.engine_hits.length ? ranking(`Engine (${found.engine})`, found.engine_hits, "agent_rank", visit) : nothing);
  put("agent-list", found.hits.length ? ranking(`Agent (${found.profile || "settings of your own"})`, found.hits, "engine_rank", visit) : []);
  at("exposed").hidden = !after.length;
  put("exposure", after.map((one, place) => dimension(before[place], one, found.targets[one.dimension])));
  at("story").hidden = false;
  put("steps", found.steps.map((one) => step(one, Math.max(...found.steps.map((each) => each.gap ?? 0)))));
  const { candidates, served } = found.entered;
  const entered = candidates ? ` The second search brought ${candidates} documents, of which ${served} are in the list.` : "";
  at("stopped").textContent = (found.stopped ? `Stopped: ${found.stopped}.` : "There was no loop.") + entered;
}

function showAnswer(found) {
  at("answered").hidden = false;
  put("answer-text", found.answer ? cited(found.answer, found.context.length) : "No answer.", found.truncated ? make("b", { class: "down" }, " [cut off here]") : []);
  put("sources", sources(found, visit));
}

async function showRecipes(body, answers, signal) {
  const made = await record(`/api/recipes?answer=${answers}`, body, signal);
  const names = { python: "Python", yaml: "YAML", command: "Command" };
  put(
    "recipes",
    Object.entries(names).map(([kind, name]) => {
      const copy = make("button", { type: "button", "aria-label": `Copy as ${name}`, onclick: async () => {
        await navigator.clipboard.writeText(made[kind]);
        copy.textContent = "Copied";
      } }, "Copy");
      return make("div", {}, make("h3", {}, name, copy), make("pre", { id: `as-${kind}`, tabindex: 0, "aria-label": name }, made[kind]));
    }),
  );
  at("again").hidden = false;
}

// --- a document ------------------------------------------------------------------------------------------------------

function visit(id) {
  const state = new URLSearchParams(location.search);
  state.set("doc", id);
  history.pushState(null, "", `?${state}`);
  openDocument(id);
}

async function openDocument(id) {
  const shown = at("document");
  try {
    const found = await record(`/api/document?id=${encodeURIComponent(id)}`);
    at("document-title").textContent = found.title || id;
    at("document-text").textContent = found.text;
  } catch (error) {
    at("document-title").textContent = id;
    at("document-text").textContent = error.message;
  }
  at("document-id").textContent = id;
  if (!shown.open) shown.showModal();
}

function closed() {
  const state = new URLSearchParams(location.search);
  if (!state.has("doc")) return;
  state.delete("doc");
  history.pushState(null, "", state.size ? `?${state}` : "/");
}

// --- the beginning ---------------------------------------------------------------------------------------------------

about = await record("/api/about");
at("collection").textContent = about.collection + (about.model ? `, ${about.model}` : ", no language model");
setPalette(about.dimensions);
at("topics").append(...about.topics.map((topic) => make("option", { value: topic.query })));
at("topic").append(...about.topics.map((topic) => make("option", { value: topic.id }, `${topic.id}: ${topic.query}`)));
at("controls").append(...about.controls.map(control));
at("form").addEventListener("submit", (event) => {
  event.preventDefault();
  go(written());
});
at("answer").addEventListener("click", () => {
  const state = written();
  state.set("do", "answer");
  go(state);
});
at("document").addEventListener("close", closed);
addEventListener("popstate", () => {
  if (at("document").open && !new URLSearchParams(location.search).has("doc")) at("document").close();
  else show();
});
show();
