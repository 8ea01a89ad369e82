// The filter: which documents a search is kept to, as text ("region=Asia|Africa, year=2020"), and a choice of what
// the collection has.

import { make } from "./draw.js";

const at = (id) => document.getElementById(id);
const FIELD = "set-where";

// Columns or dimensions, each with the values of which a document must have one. A comma parts two columns only where
// the name of a column and "=" follow it.
function parsed(text) {
  const parts = text.split(/,\s*(?=[^,=|]+=)/).filter((part) => part.trim());
  return parts.map((part) => {
    const [column, ...values] = part.split("=");
    return [column.trim(), values.join("=").split("|").map((one) => one.trim())];
  });
}

const written = (pairs) => pairs.map(([column, values]) => `${column}=${values.join("|")}`).join(", ");

// `columns()` gives those of the collection with their values, once somebody looks.
export function filter(place, columns) {
  const field = make("input", { id: FIELD, "aria-label": "Only documents with", placeholder: "column=value|value, column=value", autocomplete: "off", spellcheck: "false" });
  const choice = (label, changed) => make("select", { "aria-label": label, onchange: changed }, make("option", { value: "" }, `${label} …`));
  const column = choice("column", offer);
  const value = choice("value", add);
  let known = null;

  async function look() {
    known ??= columns();
    for (const one of await known) if (![...column.options].some((there) => there.value === one.name)) column.append(make("option", { value: one.name }, one.name));
  }

  async function offer() {
    const chosen = (await known).find((one) => one.name === column.value);
    value.replaceChildren(value.options[0], ...(chosen?.values ?? []).map((one) => make("option", { value: one }, one)));
    value.disabled = !chosen?.values.length;
    // Too many values to choose from are typed.
    if (chosen && !chosen.values.length) {
      field.value = written([...parsed(field.value), [chosen.name, [""]]]);
      field.focus();
    }
  }

  function add() {
    const pairs = parsed(field.value);
    const there = pairs.find(([name]) => name === column.value);
    if (!there) pairs.push([column.value, [value.value]]);
    else if (!there[1].includes(value.value)) there[1].push(value.value);
    field.value = written(pairs);
    value.value = "";
  }

  value.disabled = true;
  column.addEventListener("focus", look);
  column.addEventListener("pointerenter", look);
  place.append(make("fieldset", { class: "where" }, make("legend", {}, "Only documents with"), make("div", { class: "choose" }, column, value), field));
  return {
    text: () => field.value.trim(),
    read(text) {
      field.value = text;
    },
    // As a request has it.
    asked() {
      const pairs = parsed(field.value);
      return pairs.length ? { where: Object.fromEntries(pairs) } : {};
    },
  };
}
