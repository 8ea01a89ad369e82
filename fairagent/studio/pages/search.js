// The search page. What is shown is what its address says: q, topic, do=answer, doc, the settings that differ, and how
// what was found is ordered.

import { events, record } from "./ask.js";
import { dial, listed, shares } from "./dial.js";
import { carried, cited, make, percent, renew, setPalette, sources, step } from "./draw.js";
import { agentList, engineList, pushedDown } from "./lists.js";
import { settings } from "./settings.js";
import { start } from "./start.js";
import { sentences, verdict } from "./verdict.js";
import { filter } from "./where.js";

const at = (id) => document.getElementById(id);
const put = (id, ...inside) => at(id).replaceChildren(...inside.flat().filter((one) => one !== null));
const SECTIONS = ["start", "answered", "stale", "judged", "order", "lists", "story"];
let about;
let controls;
let kept;
let turned;
let announced;
let shown = {};
let found; // what the lists are shown of
let answered = null; // the order that the answer is from; null: there is no answer
let asking = new AbortController();
let ordering = new AbortController();

// --- the address -----------------------------------------------------------------------------------------------------

function written() {
  const state = new URLSearchParams();
  if (at("q").value.trim()) state.set("q", at("q").value.trim());
  if (at("topic").value) state.set("topic", at("topic").value);
  for (const [name, value] of Object.entries(controls.choices())) state.set(name, Array.isArray(value) ? value.join("\n") : value);
  if (kept.text()) state.set("where", kept.text());
  turned.write(state);
  return state;
}

function read() {
  const state = new URLSearchParams(location.search);
  at("q").value = state.get("q") ?? "";
  at("topic").value = state.get("topic") ?? "";
  controls.read(state);
  kept.read(state.get("where") ?? "");
  turned.read(state);
  return state;
}

function go(state) {
  if (`?${state}` !== location.search) history.pushState(null, "", state.size ? `?${state}` : "/");
  show();
}

// --- another order of what was found ---------------------------------------------------------------------------------

async function asked() {
  addressed();
  ordering.abort();
  ordering = new AbortController();
  const { signal } = ordering;
  try {
    const next = await record("/api/reorder", { ...shown, trace: true, ...turned.order() }, signal);
    put("error");
    ordered(next);
    announce();
  } catch (error) {
    if (!signal.aborted) put("error", make("p", { class: "notice" }, error.message));
  }
}

// Another list of the frontier: all of it is here already.
function walked(number) {
  ordering.abort();
  addressed();
  const here = listed(found, number);
  showOrder(here);
  // What was noted is of the list that was served.
  at("notes").hidden = number !== found.frontier.served;
  announce(here);
}

function addressed() {
  const state = new URLSearchParams(location.search);
  turned.write(state);
  history.replaceState(null, "", `?${state}`);
}

// Once the hand rests: then people who listen hear what came of it.
function announce(here = found) {
  clearTimeout(announced);
  announced = setTimeout(() => {
    at("state").textContent = `${sentences(here)}. ${at("cost").textContent}`;
  }, 400);
}

function ordered(next) {
  found = next;
  turned.found(found);
  at("notes").hidden = false;
  showOrder(found);
}

// --- what is shown ---------------------------------------------------------------------------------------------------

async function show() {
  const state = read();
  ordering.abort();
  clearTimeout(announced);
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  shown = { query: at("q").value.trim(), topic: at("topic").value, settings: controls.choices(), ...kept.asked() };
  const body = shown;
  put("error");
  for (const id of SECTIONS) at(id).hidden = true;
  if (!body.query && !body.topic) {
    document.title = "fairagent studio";
    at("state").textContent = "";
    await showStart(signal);
    if (state.get("doc")) await openDocument(state.get("doc"));
    return;
  }
  document.title = `${body.query || body.topic}: fairagent studio`;
  const answers = state.get("do") === "answer";
  const doing = answers ? "Searching, then answering" : "Searching";
  at("state").textContent = `${doing} …`;
  for (const id of ["notes", "alarms"]) put(id);
  for (const id of ["answer-text", "carried", "sources"]) put(id);
  answered = null;
  const started = performance.now();
  let taken = 0;
  const on = (kind, said) => {
    if (kind === "step") {
      taken += 1;
      at("state").textContent = `${doing} … ${taken} ${taken === 1 ? "step" : "steps"}, last: ${said.source}${said.accepted ? "" : ", not kept"}`;
    } else if (kind === "cited") {
      put("carried", carried({ cited: said.exposure }, { cited: said.gap }));
    } else {
      at("answered").hidden = false;
      at("answer-text").append(said.text);
    }
  };
  try {
    // The lists are those of a search in another order; an answer is made from a search that is made so.
    const reply = await events(answers ? "/api/answer" : "/api/search", { ...body, trace: true, ...(answers ? turned.order() : {}) }, on, signal);
    if (answers) showAnswer(reply);
    showSearch(answers ? reply.search : reply);
    answered = answers ? JSON.stringify(turned.order()) : null;
    // An answer brings no frontier: that of its search is here already, or its model's replies are.
    at("dial").hidden = false;
    if (turned.any() || answers) {
      try {
        ordered(await record("/api/reorder", { ...body, trace: true, ...turned.order() }, signal));
      } catch (error) {
        if (signal.aborted) return;
        at("dial").hidden = !turned.any(); // a list that was drawn has no order to change
        if (turned.any()) put("error", make("p", { class: "notice" }, error.message));
      }
    }
    at("state").textContent = `Done in ${((performance.now() - started) / 1000).toFixed(2)} s.`;
    if (state.get("doc")) await openDocument(state.get("doc"));
  } catch (error) {
    if (signal.aborted) return;
    at("state").textContent = at("answer-text").textContent ? "Ended before the answer was whole." : "Nothing was found.";
    put("error", make("p", { class: "notice" }, error.message));
  }
}

async function showStart(signal) {
  try {
    const held = await record("/api/contents", undefined, signal);
    if (signal.aborted) return;
    start(at("start"), about.collection, held, ({ query, topic }) => {
      at("q").value = topic ? "" : query;
      at("topic").value = topic;
      go(written());
    });
    at("start").hidden = false;
  } catch (error) {
    if (!signal.aborted) put("error", make("p", { class: "notice" }, error.message));
  }
}

function showSearch(searched) {
  turned.settings(searched.order);
  ordered(searched);
  at("profile").textContent = searched.profile || "settings of your own";
  at("engine").textContent = searched.engine;
  at("story").hidden = false;
  put("steps", searched.steps.map((one) => step(one, Math.max(...searched.steps.map((each) => each.gap)))));
  const kept = searched.steps.filter((one) => one.accepted).length;
  at("taken").textContent = `${searched.steps.length} ${searched.steps.length === 1 ? "step" : "steps"}, ${kept} kept`;
  const { candidates, served } = searched.entered;
  const entered = candidates ? ` Further searches brought ${candidates} documents, of which ${served} are in the list.` : "";
  at("stopped").textContent = (searched.stopped ? `Stopped: ${searched.stopped}.` : "There was no loop.") + entered;
}

// What another order of the same candidates changes.
function showOrder(found) {
  const grouped = found.exposure.after.length > 0;
  const nothing = make("p", {}, "Nothing was found: no word of the query occurs in the index.");
  at("judged").hidden = !grouped || !found.engine_hits.length;
  at("order").hidden = at("judged").hidden;
  at("stale").hidden = answered === null || answered === JSON.stringify(turned.order());
  at("lists").hidden = false;
  verdict(found, at("verdict"));
  at("cost").textContent = found.relevance_kept === null ? "" : `Keeps ${percent(found.relevance_kept)} of the estimated relevance.`;
  shares(at("set-shares"), found, (dimension, given) => turned.share(dimension, given));
  put("notes", found.notes.map((text) => make("p", { class: "hint" }, text)));
  put("alarms", found.alarms.map((text) => make("p", { class: "notice" }, text)), found.oracle ? make("p", { class: "notice" }, "ORACLE: a target or the groups came from the relevance judgments.") : []);
  renew(at("pushed"), pushedDown(found, visit));
  renew(at("engine-list"), found.engine_hits.length ? engineList(found, visit) : nothing);
  renew(at("agent-list"), found.hits.length ? agentList(found, visit) : []);
}

function showAnswer(found) {
  at("answered").hidden = false;
  put("answer-text", found.answer ? cited(found.answer, found.context.length) : "No answer.", found.truncated ? make("b", { class: "down" }, " [cut off here]") : []);
  const { exposure, gap, given, revision } = found.citations;
  put(
    "carried",
    carried({ ranking: found.search.exposure.after, context: exposure.context, cited: exposure.cited }, gap),
    given ? make("p", { class: "hint" }, `Given: ${given.text}.`) : null,
    revision ? make("p", { class: "hint" }, `${revision.kept ? "Revised" : "Not revised"}: ${revision.why}.`) : null,
  );
  put("sources", sources(found, visit));
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
at("collection").textContent = about.collection + (about.model ? `, ${about.model}` : `, no language model${about.unasked ? `: ${about.unasked}` : ""}`);
setPalette(about.dimensions);
at("asks").textContent = about.model ? `and may ask ${about.model} again` : "and asks no model";
at("topical").hidden = !about.topics.length;
at("topics").append(...about.topics.map((topic) => make("option", { value: topic.query })));
at("topic").append(...about.topics.map((topic) => make("option", { value: topic.id }, `${topic.id}: ${topic.query}`)));
controls = settings(about, Object.keys(about.dimensions).length ? ["n"] : [], at("controls"), at("more"));
kept = filter(at("controls"), async () => (await record("/api/contents")).columns);
turned = dial(asked, walked);
at("form").addEventListener("submit", (event) => {
  event.preventDefault();
  go(written());
});
at("answer").addEventListener("click", () => {
  const state = written();
  state.set("do", "answer");
  go(state);
});
at("again").addEventListener("click", show);
at("document").addEventListener("close", closed);
addEventListener("popstate", () => {
  if (at("document").open && !new URLSearchParams(location.search).has("doc")) at("document").close();
  else show();
});
show();
