// The dial: fairness, the list's length, and targets, each of which only orders what was found anew.

import { make, percent } from "./draw.js";

const at = (id) => document.getElementById(id);
const MIDDLE = 20; // the step of fairness 1; ten times as much, or as little, is so many steps away
const NAMES = ["fairness", "n", "unknown", "shares"];

// Steps of the slider: 0, then 0.11 to 10, evenly by their logarithm.
export const fairnessAt = (step) => (step <= 0 ? 0 : Number((10 ** ((step - MIDDLE) / MIDDLE)).toPrecision(2)));
export const stepAt = (fairness) => (fairness <= 0 ? 0 : Math.min(2 * MIDDLE, Math.max(1, Math.round(MIDDLE + MIDDLE * Math.log10(fairness)))));

// `moved()` is called for every move.
export function dial(moved) {
  let own = { n: 20, most: 100, fairness: null, unknown: "share" }; // what the settings say: see `settings`
  const slider = at("set-fairness");
  let order = {};

  // What differs from the settings.
  const changed = (name, value) => {
    const { [name]: _, ...rest } = order;
    order = value === null || JSON.stringify(value) === JSON.stringify(own[name]) ? rest : { ...rest, [name]: value };
    tell();
    moved();
  };

  function tell() {
    const fairness = order.fairness ?? own.fairness ?? "";
    at("fairness-now").textContent = fairness;
    slider.setAttribute("aria-valuetext", `${fairness}${fairness === 0 ? ", by relevance alone" : fairness === own.fairness ? ", as the settings say" : ""}`);
    at("undo").hidden = !Object.keys(order).length;
  }

  slider.max = 2 * MIDDLE;
  slider.addEventListener("input", () => changed("fairness", fairnessAt(Number(slider.value))));
  at("set-n").addEventListener("input", () => {
    if (at("set-n").value && at("set-n").checkValidity()) changed("n", Number(at("set-n").value));
  });
  at("set-unknown").addEventListener("change", () => {
    const { value } = at("set-unknown");
    changed("unknown", Number.isNaN(Number(value)) ? value : Number(value));
  });
  at("undo").addEventListener("click", () => {
    order = {};
    draw();
    moved();
    slider.focus();
  });

  function draw() {
    at("priced").hidden = own.fairness === null;
    at("set-n").max = own.most;
    slider.value = stepAt(order.fairness ?? own.fairness ?? 1);
    at("set-n").value = order.n ?? own.n;
    const unknown = String(order.unknown ?? own.unknown);
    const select = at("set-unknown");
    if (![...select.options].some((one) => one.value === unknown)) select.append(make("option", { value: unknown }, percent(Number(unknown))));
    select.value = unknown;
    tell();
  }

  return {
    order: () => order,
    any: () => Object.keys(order).length > 0,
    // What the settings of a search come to, as its record has it.
    settings(found) {
      own = found;
      draw();
    },
    // Shares of one dimension's groups.
    share: (dimension, given) => changed("shares", { ...order.shares, [dimension]: given }),
    // The order that an address names; what it has of another form is left to the server to refuse.
    read(state) {
      order = {};
      for (const name of NAMES) {
        const given = state.get(name);
        if (given === null) continue;
        try {
          order[name] = JSON.parse(given);
        } catch {
          order[name] = given;
        }
      }
      draw();
    },
    write(state) {
      for (const name of NAMES) {
        if (name in order) state.set(name, typeof order[name] === "string" ? order[name] : JSON.stringify(order[name]));
        else state.delete(name);
      }
    },
  };
}

// A field for each group's share: `targets` are those of the record; `given(shares)` is called once they add up to 1.
export function shares(place, found, given) {
  if (place.contains(document.activeElement)) return;
  place.replaceChildren(
    ...found.exposure.after.map((one) => {
      const said = make("p", { class: "fine", role: "status" });
      const fields = one.groups.map((group) => {
        const field = make("input", { type: "number", min: 0, max: 100, step: "any", value: Math.round(1000 * group.target) / 10, "aria-label": `Target of ${group.label} in percent`, oninput: changed });
        return [make("label", {}, make("span", { title: group.label }, group.label), field, "%"), field];
      });
      function changed() {
        const values = fields.map(([, field]) => (field.value === "" || !field.checkValidity() ? NaN : Number(field.value)));
        const sum = values.reduce((all, value) => all + value, 0);
        if (Math.abs(sum - 100) > 0.5) {
          said.textContent = Number.isNaN(sum) ? "Each share is a number from 0 to 100." : `They add up to ${Number(sum.toFixed(1))}%; they are used once they add up to 100%.`;
          return;
        }
        said.textContent = "";
        given(one.dimension, Object.fromEntries(one.groups.map((group, place) => [group.label, values[place] / sum])));
      }
      return make("fieldset", {}, make("legend", {}, one.dimension), fields.map(([label]) => label), said);
    }),
  );
}
