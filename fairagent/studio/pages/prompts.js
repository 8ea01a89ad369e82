// The Prompts page. Its address says which template is edited and what it is filled with: id, q, topic, group, documents.
// What is typed is kept in the tab's own store until it is saved or discarded, whatever happens to the page or the server.

import { events, record } from "./ask.js";
import { diffed, fault, fillSide, message, pair, summary, variable } from "./draw-prompts.js";
import { make, setPalette } from "./draw.js";
import { painter } from "./editor.js";

const PAUSE = 250;
const TEN = 10;
const SHOWN_FAULTS = 50;
const at = (id) => document.getElementById(id);
const put = (id, ...inside) => at(id).replaceChildren(...inside.flat().filter((one) => one !== null));
const notice = (text) => make("p", { class: "notice" }, text);
const text = at("text");
const draftOf = (id) => `fairagent prompt ${id}`;

const yours = (id) => `${id} (yours)`;

let about; // of the collection
let all; // templates, and the folder
let now; // the template: its versions, the user's own, its variables
let base = ""; // the text that changes are counted from
let was = ""; // the SHA-256 that the user's file had when that was read
let checking = false;
let stale = false; // something was typed since the last check began
let timer = 0;
let trying = null;

// --- what it is filled with ------------------------------------------------------------------------------------------

function filled() {
  const given = { id: now.id, template: text.value, query: at("q").value.trim(), topic: at("topic").value };
  return { ...given, group: at("group").value, documents: Number(at("documents").value) || 3 };
}

function address() {
  const { id, query, topic, group, documents } = filled();
  const state = new URLSearchParams({ id });
  if (query) state.set("q", query);
  if (topic) state.set("topic", topic);
  if (group) state.set("group", group);
  if (documents !== 3) state.set("documents", documents);
  return `/prompts?${state}`;
}

// --- the editor ------------------------------------------------------------------------------------------------------

const paper = painter(text, at("paint"));

function openLine(line) {
  const lines = text.value.split("\n");
  const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  text.focus({ preventScroll: true });
  text.setSelectionRange(start, start + (lines[line - 1] ?? "").length);
  const row = paper.row(line);
  if (row) row.closest(".editor").scrollTop = row.offsetTop - 3 * row.offsetHeight;
}

function typed() {
  paper.paint();
  if (text.value === base) {
    sessionStorage.removeItem(draftOf(now.id));
    was = now.own.sha256;
  } else sessionStorage.setItem(draftOf(now.id), JSON.stringify({ template: text.value, was }));
  at("saved").textContent = text.value === base ? "" : "not saved";
  clearTimeout(timer);
  timer = setTimeout(check, PAUSE);
}

// Another text in the place of what is there, which can be had back.
function replace(other) {
  const before = text.value;
  if (before === other) return;
  const undo = make("button", { type: "button", onclick: () => {
    put("state");
    text.value = before;
    typed();
  } }, "Undo");
  text.value = other;
  put("state", "Replaced. ", undo);
  typed();
}

// One check at a time; what was typed meanwhile is checked next.
async function check() {
  stale = true;
  if (checking) return;
  checking = true;
  while (stale) {
    stale = false;
    try {
      const found = await record("/api/prompts/check", filled());
      if (stale) continue;
      put("error");
      showCheck(found);
    } catch (error) {
      at("verdict").textContent = "not checked";
      put("error", notice(error.message));
    }
  }
  checking = false;
}

function showCheck(found) {
  const { faults } = found;
  const hidden = found.hidden.length ? ` Hidden characters in line ${found.hidden.join(", ")}.` : "";
  at("verdict").textContent = (faults.length ? `${faults.length} ${faults.length === 1 ? "fault" : "faults"}` : "no fault") + hidden;
  at("verdict").className = `verdict ${faults.length ? "down" : "up"}`;
  put("faults", faults.slice(0, SHOWN_FAULTS).map((one) => fault(one, openLine)));
  at("save").disabled = faults.length > 0;
  paper.mark(new Set(faults.map((one) => one.line)));
  at("filled").textContent = faults.length ? "Nothing is sent before the faults are mended." : found.about;
  put("messages", found.messages.map(message));
  const longest = found.longest_reply === null ? "" : `, and at most ${found.longest_reply} for the reply`;
  at("tokens").textContent = found.messages.length ? `About ${found.tokens} tokens${longest}.` : "";
  put("diff", found.diff.length ? found.diff.map(diffed) : "as the shipped one");
  mayTry(faults.length > 0);
}

// --- templates and versions ------------------------------------------------------------------------------------------

async function openTemplate(id) {
  now = await record(`/api/prompts/${encodeURIComponent(id)}`);
  const of = all.templates.find((one) => one.id === id);
  at("id").value = id;
  at("purpose").textContent = `${now.purpose} Its reply: ${now.reply}.`;
  at("aimed").hidden = !of.refines;
  at("shown").hidden = !of.reads;
  document.title = `${id}: fairagent studio`;
  document.querySelector("#variables tbody").replaceChildren(...now.variables.map(variable));
  put("tried");
  put("ended");
  put("effect");
  put("conflict");
  at("trying").textContent = "";
  versions(now.own.template === null ? "shipped" : "own");
  base = chosen();
  const draft = JSON.parse(sessionStorage.getItem(draftOf(id)));
  text.value = draft?.template ?? base;
  was = draft?.was ?? now.own.sha256;
  at("state").textContent = draft === null ? "" : "What you typed before is here again; it is not saved.";
  if (now.own.fault) put("error", notice(now.own.fault));
  typed();
}

function versions(picked) {
  const own = now.own.template === null ? [] : [["own", now.own.file]];
  const options = [...own, ...now.versions.map((one) => [one.name, one.name])];
  put("version", options.map(([value, name]) => make("option", { value }, name)));
  at("version").value = picked;
  offer();
  at("file").textContent = `to ${now.own.file}`;
}

function chosen() {
  const { value } = at("version");
  return value === "own" ? now.own.template : now.versions.find((one) => one.name === value).template;
}

async function save() {
  put("conflict");
  const { id, template } = filled();
  try {
    const { own } = await record("/api/prompts/save", { id, template, was });
    if (now.id !== id) return;
    now.own = own;
    base = template;
    was = own.sha256;
    versions("own");
    at("id").selectedOptions[0].textContent = yours(id);
    at("state").textContent = `Saved to ${own.file}.`;
    typed();
  } catch (error) {
    put("conflict", notice(error.message), error.status === 409 ? await choices() : []);
  }
}

// The file was changed meanwhile: both texts are there, and the user says which one stays.
async function choices() {
  const theirs = (await record(`/api/prompts/${encodeURIComponent(now.id)}`)).own;
  const mine = make("button", { type: "button", onclick: () => {
    was = theirs.sha256;
    save();
  } }, "Put mine in its place");
  const take = make("button", { type: "button", onclick: () => {
    now.own = theirs;
    was = theirs.sha256;
    versions(theirs.template === null ? "shipped" : "own");
    base = chosen();
    put("conflict");
    replace(base);
  } }, "Take the file's");
  const shown = make("pre", { tabindex: 0, "aria-label": "the file as it is now" }, theirs.template ?? "(there is no file any more)");
  return [make("details", {}, make("summary", {}, "The file as it is now"), shown), make("div", { class: "act" }, mine, " ", take)];
}

// --- trying ----------------------------------------------------------------------------------------------------------

const NOW = "as it stands";

// The texts that can be tried, by their names.
function texts() {
  const own = now.own.template === null ? [] : [["saved", now.own.template]];
  return new Map([...now.versions.map((one) => [one.name, one.template]), ...own, [NOW, text.value]]);
}

function offer() {
  for (const [side, first] of [["left", "shipped"], ["right", NOW]]) {
    const before = at(side).value;
    const names = [...texts().keys()];
    put(side, names.map((name) => make("option", { value: name }, name === NOW ? "the text as it stands" : name)));
    at(side).value = names.includes(before) ? before : first;
  }
}

function mayTry(faulty) {
  const same = at("left").value === at("right").value;
  at("tryable").textContent = !all.model
    ? "Trying needs a language model: start the studio with --set model.name=NAME."
    : same ? "Choose two different versions." : `Both are sent to ${all.model}; replies that were paid for before come from the cache.`;
  at("try-one").disabled = !all.model || same || faulty || trying !== null;
  at("try-ten").disabled = at("try-one").disabled || !about.topics.length;
}

async function tryOn(topics) {
  const [left, right] = [at("left").value, at("right").value];
  const body = { ...filled(), template: texts().get(right), topics };
  const shipped = left === "shipped";
  if (!shipped) body.against = texts().get(left);
  const names = { [shipped ? "shipped" : "against"]: left, edited: right };
  const pairs = new Map();
  trying = new AbortController();
  mayTry(false);
  for (const id of ["tried", "ended", "effect"]) put(id);
  at("stop").hidden = false;
  at("trying").textContent = "Asking the model …";
  let done = 0;
  const on = (_, one) => {
    const key = `${one.topic}\n${one.query}`;
    if (!pairs.has(key)) {
      pairs.set(key, pair(one.topic, one.query, names));
      at("tried").append(pairs.get(key).card);
    }
    fillSide(pairs.get(key).sides[one.side], one, !topics.length, openDocument);
    at("trying").textContent = `${++done} tried …`;
  };
  try {
    const found = await events("/api/prompts/try", body, on, trying.signal);
    at("trying").textContent = summary(found, names);
    put("effect", [found.no_effect, found.unused].filter(Boolean).map(notice));
    if (found.ended) put("ended", notice(`The model failed: ${found.ended}`));
  } catch (error) {
    at("trying").textContent = `${done} tried.`;
    put("ended", notice(trying.signal.aborted ? "Stopped." : error.message));
  }
  trying = null;
  at("stop").hidden = true;
  check();
}

const openDocument = (id) => open(`/?doc=${encodeURIComponent(id)}`, "_blank", "noopener");

// --- the beginning ---------------------------------------------------------------------------------------------------

async function show() {
  const state = new URLSearchParams(location.search);
  at("q").value = state.get("q") ?? "";
  at("topic").value = state.get("topic") ?? "";
  at("group").value = state.get("group") ?? "";
  at("documents").value = state.get("documents") ?? 3;
  const id = state.get("id");
  try {
    await openTemplate(all.templates.some((one) => one.id === id) ? id : "refine_query");
  } catch (error) {
    put("error", notice(error.message));
  }
}

async function change() {
  history.pushState(null, "", address());
  await check();
}

[about, all] = await Promise.all([record("/api/about"), record("/api/prompts")]);
setPalette(about.dimensions);
const used = all.used === "shipped" ? "the shipped templates" : all.used;
const option = make("code", { class: "whole" }, `--set prompts=${all.folder}`);
const kept = all.used === all.folder ? ["its next start uses what you save there"] : [`what you save goes to ${all.folder}, for `, option];
at("about").replaceChildren(`Searches of this studio ask with ${used}; `, ...kept, ".");
at("topics").append(...about.topics.map((topic) => make("option", { value: topic.query })));
at("topic").append(...about.topics.map((topic) => make("option", { value: topic.id }, `${topic.id}: ${topic.query}`)));
const labels = Object.values(about.dimensions).flat();
at("group").append(...[...new Set(labels)].map((label) => make("option", { value: label }, label)));
at("id").append(...all.templates.map((one) => make("option", { value: one.id }, one.own ? yours(one.id) : one.id)));
at("id").addEventListener("change", async () => {
  history.pushState(null, "", `/prompts?${new URLSearchParams({ id: at("id").value })}`);
  await show();
});
at("version").addEventListener("change", () => {
  replace(chosen());
});
for (const id of ["q", "topic", "group", "documents"]) at(id).addEventListener("change", change);
at("form").addEventListener("submit", (event) => {
  event.preventDefault();
  change();
});
text.addEventListener("input", typed);
at("save").addEventListener("click", save);
at("discard").addEventListener("click", () => {
  replace(base);
});
at("try-one").addEventListener("click", () => tryOn([]));
at("try-ten").addEventListener("click", () => tryOn(about.topics.slice(0, TEN).map((topic) => topic.id)));
for (const id of ["left", "right"]) at(id).addEventListener("change", () => mayTry(at("faults").childElementCount > 0));
at("stop").addEventListener("click", () => trying?.abort());
addEventListener("popstate", show);
show();
