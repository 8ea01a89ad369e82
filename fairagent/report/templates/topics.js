"use strict";
// One topic, drawn from the page's data when it is opened. Whatever comes from outside becomes text, never markup.
const Topics = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const COLORS = 12;
  const SVG = document.querySelector("svg").namespaceURI;

  const el = (tag, about = {}, ...inside) => {
    const made = document.createElement(tag);
    for (const [key, value] of Object.entries(about)) if (value !== undefined) made.setAttribute(key, value);
    made.append(...inside.filter((one) => one !== null && one !== undefined && one !== ""));
    return made;
  };
  const soft = (...inside) => el("p", { class: "soft" }, ...inside);
  const bdi = (text) => el("bdi", {}, text);
  const system = (number) => document.getElementById(`name-${number}`).content.cloneNode(true);
  const nameOf = (number) => system(number).querySelector(".sys").textContent.trim();
  const counted = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
  const percent = (share) => {
    // As Python rounds: a half to the even number.
    const half = (100 * share) % 1 === 0.5;
    const rounded = `${half ? 2 * Math.round(50 * share) : Math.round(100 * share)}%`;
    return rounded === "0%" && share > 0 ? "<1%" : rounded;
  };
  const color = (number) => (number === null ? "u" : number % COLORS);
  const chip = ([number, text]) => el("i", { class: `g g${color(number)}` }, text);
  const short = (number) => Number((100 * number).toPrecision(4));

  function bar([scale, shares, unknown, due = null]) {
    const [dimension, labels, colors, target] = data.scales[scale];
    const ofKnown = 1 - unknown, dueKnown = due === null ? ofKnown : 1 - due;
    const drawn = document.createElementNS(SVG, "svg");
    const words = [];
    let at = 0, wanted = 0;
    const part = (left, width, top, height) => (width < 0.0005 ? "" : `M${short(left)} ${top}h${short(width)}v${height}h-${short(width)}z`);
    const row = (label, number, share, wants, width, wantsWidth) => {
      const drawing = part(at, width, 0, 6.5) + part(wanted, wantsWidth, 8, 2);
      if (drawing) {
        const path = document.createElementNS(SVG, "path");
        path.setAttribute("class", `b${color(number)}`);
        path.setAttribute("d", drawing);
        drawn.append(path);
      }
      at += width;
      wanted += wantsWidth;
      if (share || wants) words.push(`${label} ${percent(share)}${wants === null ? "" : ` (target ${percent(wants)})`}`);
    };
    labels.forEach((label, place) => row(label, colors[place], shares[place], target[place], shares[place] * ofKnown, target[place] * dueKnown));
    row("no label (of all)", null, unknown, due, unknown, due ?? 0);
    const about = { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img", "aria-label": `${dimension}: ${words.join(", ")}` };
    for (const [key, value] of Object.entries(about)) drawn.setAttribute(key, value);
    return [el("span", { class: "dim" }, dimension), drawn];
  }
  const bars = (exposures) => (exposures ? el("div", { class: "bars" }, ...exposures.flatMap(bar)) : null);

  const textAt = (number) => (number === undefined ? "" : data.texts[number]);

  // What is told of a step depends on the last one before it that was accepted.
  function step(one, before, query) {
    const aim = textAt(one.aim);
    const why = textAt(one.why), reason = textAt(one.reason);
    const kind = !before ? "query" : why ? "decision" : !aim ? "expansion" : one.terms ? "refinement" : "nothing";
    const what = el("div", { class: "what" });
    const said = textAt(one.source), source = said.charAt(0).toUpperCase() + said.slice(1).toLowerCase();
    if (kind === "query") what.append(el("p", {}, "The user's query: ", el("b", {}, bdi(query || "(empty)"))));
    else if (kind === "decision") {
      what.append(el("p", {}, el("b", {}, source), `: ${why}`));
    } else if (kind === "expansion") what.append(el("p", {}, `${source}, whatever the group:`));
    else {
      const was = one.was ? `, which had ${percent(one.was[0])} (target ${percent(one.was[2])})` : "";
      what.append(el("p", {}, "Aimed at ", el("b", {}, aim), `${was}. ${source} ${one.terms ? "added:" : "had nothing to add."}`));
    }
    if (one.terms && kind !== "query") {
      const terms = one.terms.flatMap(([text, weight]) => [el("span", { class: "term" }, bdi(textAt(text)), el("small", {}, weight)), " "]);
      what.append(el("p", { class: "terms" }, ...terms, one.more ? el("span", { class: "soft" }, `and ${one.more} more`) : null));
    }
    if (one.dropped) what.append(soft("Dropped, not in the index: ", bdi(one.dropped.join(", "))));
    if (one.proposed) what.append(soft(`Usable of what the model proposed: ${one.proposed}.`));
    if (one.refused) what.append(soft("Refused: ", bdi(one.refused.join("; "))));
    if (kind !== "nothing") {
      const became = one.discarded ? el("span", { class: "badge no" }, reason ? `discarded: ${reason}` : "discarded") : el("span", { class: "badge yes" }, "accepted");
      const change = (before ? `, was ${before.gap}` : "") + (one.was ? `; now ${percent(one.was[1])}` : "");
      what.append(el("p", { class: "gap" }, "gap ", el("b", {}, one.gap), `${change} `, kind === "refinement" || kind === "decision" ? became : null));
    }
    if (one.worse) what.append(el("p", { class: "fell" }, `Less fair in ${one.worse.join(", ")}.`));
    if (one.entered) what.append(soft(`${counted(one.entered, "document")} from the whole collection.`));
    return el("li", { class: kind + (one.discarded ? " refused" : "") }, what, bars(one.exposures));
  }

  function story(panel, query) {
    let before;
    const steps = (panel.steps ?? []).map((one) => {
      const shown = step(one, before, panel.query ?? query);
      if (!before || !one.discarded) before = one;
      return shown;
    });
    const stopped = textAt(panel.stopped);
    const [calls, read, written, cost] = panel.took;
    const took = counted(calls, "model call") + (calls ? `, ${counted(read, "token")} in, ${counted(written, "token")} out, ${cost}` : "");
    const ended = `${stopped ? "Stopped: " : ""}${stopped || "No loop"}. ${data.ranked ? "The ranking that is judged" : "The documents that were found"}:`;
    const end = el("li", { class: "end" }, el("div", { class: "what" }, el("p", {}, ended), soft(took)), bars(panel.exposures));
    return el("ol", { class: "story" }, ...steps, end);
  }

  function ranking(panel, compared) {
    const head = (text, about = {}) => el("th", { scope: "col", ...about }, text);
    const heads = [head("rank"), data.ranked ? head(el("abbr", { title: "relevant" }, "rel.")) : null, head("document"), head("groups")];
    if (compared) heads.push(head(el("abbr", { title: "ranks up or down from the baseline's ranking" }, "moved"), { class: "n" }));
    const rows = (panel.hits ?? []).map(([number, relevant, moved], place) => {
      const [text, groups] = data.documents[number];
      const cells = [el("td", {}, String(place + 1)), data.ranked ? el("td", {}, relevant ? "✓" : "") : null];
      const snippet = data.snippets[number];
      const shown = snippet ? el("details", { class: "text" }, el("summary", {}, bdi(text)), el("p", {}, bdi(snippet))) : bdi(text);
      cells.push(el("td", {}, shown), el("td", {}, ...(groups.length ? groups.map(chip) : ["–"])));
      if (compared) cells.push(el("td", { class: "n" }, moved === null ? el("b", {}, "new") : moved > 0 ? `↑${moved}` : moved < 0 ? `↓${-moved}` : "="));
      return el("tr", relevant ? { class: "r" } : {}, ...cells);
    });
    if (!rows.length) rows.push(el("tr", {}, el("td", { colspan: heads.length }, "No document was found.")));
    const table = el("table", { class: "ranking" }, el("caption", {}, system(panel.system)), el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...rows));
    const region = el("div", { class: "sideways", tabindex: 0, role: "region", "aria-label": `Ranking of ${nameOf(panel.system)}` }, table);
    return [region, panel.hidden ? soft(`and ${counted(panel.hidden, "more document")}, in the run file`) : null];
  }

  function answer(panel) {
    if (!panel.answer) return [];
    const [text, by, removed] = panel.answer;
    const graded = by === "preference" ? "preferred" : `graded by ${by === "model" ? "a model" : "rule"}`;
    const taken = removed.length ? `; the filter removed ${removed.join(", ")}` : "";
    return [el("blockquote", {}, bdi(text)), soft(system(panel.system), `, ${graded}${taken}`)];
  }
  const failure = (panel) => el("p", { class: "notice" }, el("b", {}, `${nameOf(panel.system)} failed on this topic:`), ` ${panel.failed}`);

  function values(topic) {
    const head = document.getElementById("columns").content.cloneNode(true);
    const rows = topic.panels.map((panel) => el("tr", {}, el("th", { scope: "row" }, system(panel.system)), ...panel.values.map((value) => el("td", { class: "n" }, value === null ? "–" : value.toFixed(3)))));
    return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Values of this topic" }, el("table", { class: "values" }, head, el("tbody", {}, ...rows)));
  }

  function draw(number, chosen) {
    const topic = data.topics[number], shown = [];
    if (topic.excluded) shown.push(el("p", { class: "notice" }, el("b", {}, "Excluded from the results:"), ` ${topic.excluded}`));
    if (!topic.panels.length) return [...shown, soft("No system has run it.")];
    shown.push(values(topic));
    const baseline = topic.panels.find((panel) => panel.system === data.baseline);
    const others = topic.panels.filter((panel) => panel !== baseline);
    const compare = el("div", { class: `compare${others.length ? "" : " alone"}` });
    const first = others.find((panel) => panel.system === chosen) ?? others[0];
    for (const panel of others) {
      const id = `pick-${number + 1}-${panel.system}`;
      const pick = el("input", { type: "radio", class: "pick", name: `t${number + 1}`, id, "data-system": panel.system });
      pick.checked = panel === first;
      compare.append(pick, el("label", { for: id }, system(panel.system)));
      if (panel.failed) compare.append(el("div", { class: "path" }, failure(panel)), el("div", { class: "side" }));
      else compare.append(el("div", { class: "path" }, ...answer(panel), story(panel, topic.query)), el("div", { class: "side" }, ...ranking(panel, baseline !== undefined).filter(Boolean)));
    }
    if (baseline) {
      const how = el("details", { class: "all" }, el("summary", {}, `How ${nameOf(baseline.system)} got there`), story(baseline, topic.query));
      how.open = !others.length;
      compare.append(el("div", { class: "side baseline" }, ...(baseline.failed ? [failure(baseline)] : [...answer(baseline), ...ranking(baseline, false).filter(Boolean), how])));
    }
    return [...shown, compare];
  }

  // What a topic can be found by: its id and query, the titles and groups of its documents, keywords, answers.
  const textOf = (number) => {
    const topic = data.topics[number];
    const said = [topic.id, topic.query, topic.excluded ?? ""];
    for (const panel of topic.panels) {
      said.push(textAt(panel.stopped), panel.failed ?? "", ...(panel.answer ?? []).flat());
      for (const [document] of panel.hits ?? []) said.push(data.documents[document][0], ...data.documents[document][1].map(([, text]) => text));
      for (const one of panel.steps ?? []) said.push(textAt(one.aim), ...(one.terms ?? []).map(([text]) => textAt(text)));
    }
    return said.join(" ").toLowerCase();
  };
  return { topics: data.topics, draw, textOf, system };
})();
