// A run: its topics, and of one topic what every system made of it, with the exchanges with models. What is shown is
// what its address says: text, topic, with (another run).

import { record } from "./ask.js";
import { chips, gapText, make, percent, setPalette } from "./draw.js";
import { exchange, many, marked, took } from "./exchange.js";

const PAUSE = 5000;
const at = (id) => document.getElementById(id);
const name = decodeURIComponent(location.pathname.split("/")[2]);
const api = (run, part, query) => `/api/runs/${encodeURIComponent(run)}${part}?${new URLSearchParams(query)}`;
let shown = "";

const state = () => new URLSearchParams(location.search);

function link(change) {
  const next = state();
  for (const [key, value] of Object.entries(change)) {
    if (value === null || value === "") next.delete(key);
    else next.set(key, value);
  }
  return `${location.pathname}${next.size ? `?${next}` : ""}`;
}

async function go(change) {
  const to = link(change);
  if (to !== `${location.pathname}${location.search}`) history.pushState(null, "", to);
  await show();
}

// A link that can be opened elsewhere as well, and leads on in this page.
function leads(change, text) {
  const on = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    go(change).then(() => at("topic-name").focus());
  };
  return make("a", { href: link(change), onclick: on }, text);
}

// --- the topics ------------------------------------------------------------------------------------------------------

function row(topic, text, systems, current) {
  const found = topic.matches.map((one) => make("li", {}, make("b", {}, [one.system, one.where].filter(Boolean).join(", ")), ": ", marked(one.text, text)));
  const more = topic.found - topic.matches.length;
  const failed = topic.failed.length ? make("span", { class: "down" }, ` failed: ${topic.failed.join(", ")}`) : null;
  return make(
    "tr",
    { "aria-current": topic.id === current ? "true" : null },
    make("th", { scope: "row" }, leads({ topic: topic.id, opened: null }, topic.id)),
    make(
      "td",
      {},
      marked(topic.query, text),
      topic.excluded ? make("span", { class: "soft" }, ` (excluded: ${topic.excluded})`) : null,
      found.length ? make("ul", { class: "found" }, found, more > 0 ? make("li", {}, `and ${more} more`) : null) : null,
    ),
    make("td", {}, `${topic.done} of ${systems}`, failed),
    make("td", {}, String(topic.calls)),
    make("td", {}, String(topic.exchanges)),
  );
}

function showTopics(run, text, current) {
  at("name").textContent = run.title;
  document.title = `${run.title}: fairagent studio`;
  at("about").textContent = `${run.kind} on ${run.collection}: ${run.systems.join(", ")}. ${run.outcomes} of ${run.planned} outcomes.`;
  const opened = run.without_topic ? [" · ", leads({ topic: null, opened: "1" }, `${many(run.without_topic, "exchange")} when systems were opened`)] : [];
  const going = run.outcomes < run.planned ? [make("progress", { max: run.planned, value: run.outcomes, "aria-label": "outcomes" })] : [];
  at("files").replaceChildren(make("a", { href: `/runs/${encodeURIComponent(name)}`, target: "_blank", rel: "noopener" }, "page"), ...opened, ...going);
  document.querySelector("#topics tbody").replaceChildren(...run.topics.map((topic) => row(topic, text, run.systems.length, current)));
  at("topics").hidden = !run.topics.length;
  const said = [`${many(run.found, "topic")}${text ? ` with ${JSON.stringify(text)}` : ""}`];
  if (run.found > run.topics.length) said.push(`the first ${run.topics.length} are shown; search for others`);
  said.push(`${many(run.exchanges, "exchange")} with models in the transcript`);
  if (run.damaged) said.push(`${many(run.damaged, "line")} of it cannot be read`);
  at("state").textContent = `${said.join("; ")}.`;
}

// --- a topic ---------------------------------------------------------------------------------------------------------

// Why the loop took the step or left it, in words; `before` is the last step that it took.
function verdict(one, before) {
  if (!before) return null;
  const change = `the gap is ${gapText(one.gap)}, was ${gapText(before.gap)}`;
  if (one.accepted) return make("p", { class: "verdict-of" }, make("span", { class: "badge yes" }, "accepted"), ` ${change}`);
  const nothing = one.terms.length || one.why ? change : "there was nothing new to search for";
  return make("p", { class: "verdict-of" }, make("span", { class: "badge no" }, "refused"), ` ${one.reason || nothing}`);
}

function step(one, place, all) {
  const before = all.slice(0, place).findLast((each) => each.accepted);
  const added = one.terms.map(([text, weight]) => make("span", { class: "term" }, text, make("small", {}, weight.toFixed(2))));
  const dropped = one.dropped.map((word) => make("del", { title: "not in the index" }, word));
  const refused = one.refused.map((word) => make("del", {}, word));
  const weights = one.weights.map(([group, weight]) => `${group} ${weight.toFixed(2)}`).join(", ");
  return make(
    "li",
    { class: one.accepted ? "" : "refused" },
    make(
      "div",
      {},
      make("p", {}, make("b", {}, one.aim ? `${one.source} for ${one.aim}` : one.source), one.why ? ` ${one.why}` : ""),
      verdict(one, before),
      one.worse.length ? make("p", { class: "fell" }, `less fair in ${one.worse.join(", ")}`) : null,
      one.entered ? make("p", { class: "soft" }, many(one.entered, "document"), " from the whole collection") : null,
      added.length ? make("p", { class: "terms" }, "added: ", added) : null,
      dropped.length || refused.length ? make("p", {}, "dropped: ", dropped, refused) : null,
      weights ? make("p", { class: "soft" }, `weights: ${weights}`) : null,
    ),
    make("p", { class: "gap" }, "gap ", make("b", {}, gapText(one.gap))),
  );
}

function values(outcome, labels) {
  const rows = Object.entries(outcome.values).flatMap(([dimension, of]) => Object.entries(of).map(([measure, value]) => [`${labels[measure] ?? measure}${dimension ? `, ${dimension}` : ""}`, measure, value]));
  return rows.length ? make("dl", { class: "values" }, rows.map(([what, measure, value]) => make("div", { title: measure }, make("dt", {}, what), make("dd", {}, value === null ? "–" : value.toFixed(4))))) : null;
}

function exposure(one) {
  const known = one.labels.map((label, place) => [label, one.shares[place], one.target[place]]);
  const unknown = one.unknown || one.unknown_target ? [["no label (of all)", one.unknown, one.unknown_target ?? null]] : [];
  const rows = [...known, ...unknown].map(([label, share, target]) => make("div", {}, make("dt", {}, label), make("dd", {}, percent(share) + (target === null ? "" : `, target ${percent(target)}`))));
  return [make("h4", {}, `Exposure, ${one.dimension}`), make("dl", { class: "values" }, rows)];
}

function panel(one, { run, labels }, text, titled) {
  const { outcome } = one;
  const hits = outcome?.hits ?? [];
  const asked = one.exchanges.map((each) => exchange(each, run, text));
  const count = asked.length + one.hidden;
  return make(
    "article",
    { class: "panel" },
    make("h3", {}, one.system || "When systems were opened", titled ? make("small", {}, run) : null),
    outcome || !one.system ? null : make("p", { class: "soft" }, "not done yet"),
    outcome?.failed ? make("p", { class: "notice" }, "failed: ", marked(outcome.failed, text)) : null,
    outcome ? values(outcome, labels) : null,
    outcome ? make("p", { class: "hint" }, outcome.calls ? `${took(outcome)}, ` : "", `${outcome.seconds.toFixed(2)} s`) : null,
    outcome?.exposures.flatMap(exposure),
    outcome?.answer ? make("p", { class: "answer" }, marked(outcome.answer.text, text)) : null,
    outcome?.steps.length ? [make("h4", {}, "Steps"), make("ol", { class: "story" }, outcome.steps.map(step)), outcome.stopped ? make("p", { class: "hint" }, outcome.stopped) : null] : null,
    hits.length ? make("details", {}, make("summary", {}, many(hits.length, "document")), make("ol", {}, hits.map((hit) => make("li", {}, hit.title || hit.id, " ", chips(hit.groups), hit.relevant ? make("span", { class: "badge yes" }, "relevant") : null)))) : null,
    count ? [make("h4", {}, `Exchanges with models: ${count}`), ...asked, one.hidden ? make("p", { class: "hint" }, `The first ${asked.length} are shown; all are in transcript.jsonl.`) : null] : null,
  );
}

function colors(topics) {
  const dimensions = {};
  for (const { systems } of topics) for (const { outcome } of systems) for (const one of outcome?.exposures ?? []) dimensions[one.dimension] = one.labels;
  setPalette(dimensions);
}

async function showTopic(id, beside, text) {
  const topics = [await record(api(name, "/topic", { id }))];
  if (beside) topics.push(await record(api(beside, "/topic", { id })));
  colors(topics);
  const [first, second] = topics;
  at("topic-name").textContent = id ? `${id}: ${first.query}` : "What was asked when systems were opened";
  at("topic-about").textContent = first.excluded ? `Excluded: ${first.excluded}` : "";
  const systems = [...new Set(topics.flatMap((topic) => topic.systems.map((one) => one.system)))];
  const panels = systems.map((system) => {
    const both = topics.map((topic) => {
      const one = topic.systems.find((each) => each.system === system);
      return one ? panel(one, topic, text, Boolean(second)) : make("p", { class: "soft" }, `${topic.run} has no system ${system}.`);
    });
    return second ? make("div", { class: "twin" }, both) : both[0];
  });
  at("panels").replaceChildren(...panels);
  at("topic").hidden = false;
}

// --- all of it -------------------------------------------------------------------------------------------------------

async function show() {
  const now = state();
  const [text, topic, beside] = [now.get("text") ?? "", now.get("topic"), now.get("with")];
  at("text").value = text;
  at("with").value = beside ?? "";
  at("error").replaceChildren();
  try {
    const run = await record(api(name, "", text ? { text } : {}));
    showTopics(run, text, topic);
    const going = run.outcomes < run.planned;
    // Drawn anew only where something has changed: what is open stays open.
    const key = JSON.stringify([text, topic, beside, now.get("opened"), run.topics.find((one) => one.id === topic) ?? null]);
    if (key !== shown) {
      shown = key;
      at("topic").hidden = true;
      if (topic || now.get("opened")) await showTopic(topic ?? "", beside, text);
    }
    clearTimeout(show.next);
    if (going) show.next = setTimeout(again, PAUSE);
  } catch (error) {
    at("error").replaceChildren(make("p", { class: "notice" }, error.message));
    at("state").textContent = "";
  }
}

// While somebody types, or goes through the list, it stays as it is.
function again() {
  if (document.activeElement.closest("#topics, #find")) show.next = setTimeout(again, PAUSE);
  else show();
}

at("find").addEventListener("submit", (event) => {
  event.preventDefault();
  go({ text: at("text").value.trim() });
});
at("with").addEventListener("change", () => go({ with: at("with").value }));
addEventListener("popstate", show);

try {
  const { runs } = await record("/api/runs");
  const others = runs.filter((run) => run.name !== name && !run.fault).map((run) => run.name);
  at("with").replaceChildren(make("option", { value: "" }, "none"), ...others.map((other) => make("option", { value: other }, other)));
  at("beside").hidden = !others.length;
} catch (error) {
  at("error").replaceChildren(make("p", { class: "notice" }, error.message));
}
show();
