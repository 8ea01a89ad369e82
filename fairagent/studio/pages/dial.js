// The dial: a slider that walks along the frontier of what was found, and the length and targets of the list.

import { make, percent, renew, svg } from "./draw.js";

const at = (id) => document.getElementById(id);
const DIALS = ["fairness", "keep", "gap"];
const NAMES = [...DIALS, "n", "unknown", "shares"];
const [WIDE, HIGH, EDGE] = [400, 120, 10];

// The lines of a found record as they are with another list of its frontier.
export function listed(found, number) {
  const { lists, hits } = found.frontier;
  const { ids, exposure, changes, kept, gap } = lists[number];
  const ranks = new Map(ids.map((id, place) => [id, place + 1]));
  return {
    ...found,
    hits: ids.map((id, place) => ({ ...hits[id], id, rank: place + 1 })),
    engine_hits: found.engine_hits.map((hit) => ({ ...hit, agent_rank: ranks.get(hit.id) ?? null })),
    exposure: { ...found.exposure, after: exposure },
    gap: { ...found.gap, after: gap },
    changes,
    relevance_kept: kept,
  };
}

// What the next list costs and gives: of the groups that lack attention the one that comes most nearer to its target, or
// of all where none of them does.
export function nextStep(here, next) {
  if (!next) return "This is the fairest list of these documents.";
  const off = (group) => Math.abs(group.share - group.target);
  const groups = here.exposure.flatMap((one, dimension) => one.groups.map((was, place) => [was, next.exposure[dimension].groups[place]]));
  const nearer = ([was, will]) => off(was) - off(will);
  const lacking = groups.filter((one) => one[0].share < one[0].target && nearer(one) >= 0.005);
  const [was, will] = (lacking.length ? lacking : groups).reduce((best, one) => (nearer(one) > nearer(best) ? one : best));
  const instead = (now, before) => (percent(now) === percent(before) ? `still ${percent(now)}` : `${percent(now)} instead of ${percent(before)}`);
  return `One step fairer: ${was.label} ${instead(will.share, was.share)}, keeping ${instead(next.kept, here.kept)} of the relevance.`;
}

// Relevance kept, upwards, against the gap: to the right it is smaller.
function curve({ lists, own }, place) {
  const points = own ? [...lists, own] : lists;
  const [most, least] = [Math.max(...points.map((one) => one.gap)), Math.min(...points.map((one) => one.gap))];
  const low = Math.min(...points.map((one) => one.kept));
  const across = (one) => EDGE + ((WIDE - 2 * EDGE) * (most - one.gap)) / (most - least || 1);
  const up = (one) => EDGE + ((HIGH - 2 * EDGE) * (1 - one.kept)) / (1 - low || 1);
  const dot = (one, name, r, title) => svg("circle", { class: name, cx: across(one), cy: up(one), r }, svg("title", {}, `${title}keeps ${percent(one.kept)}, gap ${one.gap.toFixed(3)}`));
  return [
    svg("polyline", { class: "line", points: lists.map((one) => `${across(one).toFixed(1)},${up(one).toFixed(1)}`).join(" ") }),
    ...lists.map((one) => dot(one, "list", 2.5, "")),
    own ? dot(own, "own", 4.5, "the engine's own list: ") : null,
    dot(lists[place], "here", 6, "this list: "),
  ];
}

// `asked()` is called where the list has to be asked for, `walked(number)` where another of the frontier is shown.
export function dial(asked, walked) {
  let own = { n: 20, most: 100, unknown: "share" }; // what the settings say
  let frontier = null;
  let given = {}; // the dial that the frontier's served list was asked for with
  let place = 0;
  let order = {};
  const slider = at("set-list");

  const dialed = () => Object.fromEntries(DIALS.filter((name) => name in order).map((name) => [name, order[name]]));
  const without = (...names) => Object.fromEntries(Object.entries(order).filter(([name]) => !names.includes(name)));

  function changed(name, value) {
    order = JSON.stringify(value) === JSON.stringify(own[name]) ? without(name) : { ...order, [name]: value };
    tell();
    asked();
  }

  function tell() {
    at("undo").hidden = !Object.keys(order).length;
    if (!frontier) return;
    const here = frontier.lists[place];
    at("list-now").textContent = `keeps ${percent(here.kept)}`;
    slider.setAttribute("aria-valuetext", `keeps ${percent(here.kept)} of the relevance, gap ${here.gap.toFixed(3)}`);
    at("next").textContent = nextStep(here, frontier.lists[place + 1]);
    renew(at("curve"), curve(frontier, place));
  }

  slider.addEventListener("input", () => {
    place = Number(slider.value);
    order = { ...without(...DIALS), ...(place === frontier.served ? given : { keep: frontier.lists[place].keep }) };
    tell();
    walked(place);
  });
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
    asked();
    slider.focus();
  });

  function draw() {
    at("priced").hidden = !frontier;
    if (frontier) [slider.max, slider.value] = [frontier.lists.length - 1, place];
    at("set-n").max = own.most;
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
    },
    // What was found, in the order that was asked for last.
    found(record) {
      ({ frontier } = record);
      place = frontier?.served ?? 0;
      given = dialed();
      draw();
    },
    // Shares of one dimension's groups.
    share: (dimension, shares) => changed("shares", { ...order.shares, [dimension]: shares }),
    // The order that an address names; what it has of another form is left to the server to refuse.
    read(state) {
      order = {};
      for (const name of NAMES) {
        const said = state.get(name);
        if (said === null) continue;
        try {
          order[name] = JSON.parse(said);
        } catch {
          order[name] = said;
        }
      }
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
