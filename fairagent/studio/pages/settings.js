// The settings: those that matter with words of their own, the rest folded under the names that settings files have.

import { make } from "./draw.js";

const boxes = (name) => [...document.querySelectorAll(`input[name="set-${name}"]`)];
const field = (name) => document.getElementById(`set-${name}`);

// `about` is the record of /api/about; `elsewhere` are the names of settings that have a control somewhere else.
export function settings(about, elsewhere, main, more) {
  const controls = about.controls.filter((one) => !elsewhere.includes(one.name) && (one.type !== "array" || Object.keys(about.dimensions).length > 1));
  const mark = (one) => document.getElementById(`name-${one.name}`).classList.toggle("set", chosen(one) !== null);

  function drawn(one) {
    const name = one.label || one.name;
    if (one.type === "array") {
      const options = Object.keys(about.dimensions).map((value) =>
        make("label", {}, make("input", { type: "checkbox", name: `set-${one.name}`, value, onchange: () => mark(one) }), value),
      );
      return make("fieldset", { title: one.meaning }, make("legend", { id: `name-${one.name}` }, name), options);
    }
    const id = `set-${one.name}`;
    const values = one.enum?.includes(one.value) || !one.enum ? one.enum : [one.value, ...one.enum];
    const words = (value) => one.words[value] ?? (value === "" ? "as the collection says" : value);
    const control = values
      ? make("select", { id, onchange: () => mark(one) }, values.map((value) => make("option", { value }, words(value))))
      : make("input", { id, type: "number", min: one.minimum, max: one.maximum, oninput: () => mark(one) });
    return make("label", { title: one.meaning }, make("span", { id: `name-${one.name}` }, name), control);
  }

  function chosen(one) {
    if (one.type === "array") {
      const all = boxes(one.name);
      const names = all.filter((box) => box.checked).map((box) => box.value);
      const before = one.value.length ? one.value : all.map((box) => box.value);
      return !names.length || names.join() === before.join() ? null : names;
    }
    const { value } = field(one.name);
    if (value === "" || value === String(one.value)) return null;
    return one.type === "integer" ? Number(value) : value;
  }

  main.append(...controls.filter((one) => one.label).map(drawn));
  more.append(...controls.filter((one) => !one.label).map(drawn));
  return {
    // Those that differ from the server's.
    choices: () => Object.fromEntries(controls.map((one) => [one.name, chosen(one)]).filter(([, value]) => value !== null)),
    // What an address says.
    read(state) {
      for (const one of controls) {
        const given = state.get(one.name);
        if (one.type === "array") {
          const names = given === null ? one.value : given.split("\n");
          for (const box of boxes(one.name)) box.checked = !names.length || names.includes(box.value);
        } else field(one.name).value = given ?? one.value;
        mark(one);
      }
    },
  };
}
