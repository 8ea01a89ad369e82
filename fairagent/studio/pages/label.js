// Documents whose labels would help, and a button a label. What is clicked is written at once.

import { record } from "./ask.js";
import { make } from "./draw.js";
import { many } from "./exchange.js";

const at = (id) => document.getElementById(id);
let shown = { dimension: "", labels: [] };

const answers = (found) => `${many(found.answers, "answer")} in ${found.file}`;
const failed = (error) => at("error").replaceChildren(make("p", { class: "notice" }, error.message));

function card(one) {
  const other = make("input", { maxlength: 100, autocomplete: "off", "aria-label": `another label for ${one.title || one.id}` });
  const form = make("form", {}, shown.labels.map((label) => make("button", { type: "button", onclick: () => give(label) }, label)), other, make("button", { type: "submit" }, "Another label"), make("button", { type: "button", onclick: () => settle("skipped") }, "Skip"));
  const said = make("p", { class: "done", role: "status", tabindex: "-1", hidden: true });
  const settle = (text) => {
    said.textContent = text;
    said.hidden = false;
    form.remove();
    const next = document.querySelector("#documents form button");
    (next ?? at("of").querySelector("button")).focus();
  };
  async function give(label) {
    for (const button of form.querySelectorAll("button")) button.disabled = true;
    at("error").replaceChildren();
    try {
      const found = await record("/api/label", { id: one.id, label, dimension: shown.dimension });
      at("state").textContent = `${answers(found)}; learn from them with fairagent label --examples`;
      settle(`labeled: ${label}`);
    } catch (error) {
      if (error.status === 409) settle(error.message);
      else failed(error);
      for (const button of form.querySelectorAll("button")) button.disabled = false;
    }
  }
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (other.value.trim()) give(other.value.trim());
  });
  return make("li", {}, make("h2", {}, one.title || one.id), make("p", { class: "hint" }, `${one.id}: ${one.why}`), make("p", {}, one.text), form, said);
}

async function show(dimension) {
  at("error").replaceChildren();
  at("state").textContent = "Looking for the documents whose labels would help most …";
  try {
    shown = await record(`/api/label?${new URLSearchParams(dimension ? { dimension } : {})}`);
    at("dimension").value = shown.dimension;
    at("dimensions").replaceChildren(...shown.dimensions.map((value) => make("option", { value })));
    at("documents").replaceChildren(...shown.documents.map(card));
    at("state").textContent = shown.documents.length ? answers(shown) : `No document lacks a label of ${shown.dimension}; ${answers(shown)}.`;
  } catch (error) {
    at("documents").replaceChildren();
    at("state").textContent = "";
    failed(error);
  }
}

at("of").addEventListener("submit", (event) => {
  event.preventDefault();
  const dimension = at("dimension").value.trim();
  history.replaceState(null, "", `/label${dimension ? `?${new URLSearchParams({ dimension })}` : ""}`);
  show(dimension);
});

show(new URLSearchParams(location.search).get("dimension") ?? "");
