// A template's text in colors: a layer under the text area, which stays an ordinary one, so that keyboard, undo and
// assistive technology have what they know. A line is a row of the layer, wraps as it does above, and has its number.

import { make } from "./draw.js";

const OPENS = /\{\{|\{%|\{#/;
const KINDS = { "{{": ["expression", "}}"], "{%": ["block", "%}"], "{#": ["comment", "#}"] };
const CLOSES = { expression: "}}", block: "%}", comment: "#}" };

// The pieces of a line, [class, text] each, and the state after it: "start", "head", "body", or within a mark of Jinja.
export function pieces(line, state) {
  if (state === "start") return line.trim() === "---" ? [[["rule", line]], "head"] : pieces(line, "body");
  if (state === "head") {
    if (line.trim() === "---") return [[["rule", line]], "body"];
    const [, space, key, rest] = /^(\s*)([\w-]+:)?(.*)$/s.exec(line);
    const said = rest.trimStart().startsWith("#") ? "comment" : "";
    return [[["", space], ["key", key ?? ""], [said, rest]].filter(([, text]) => text), "head"];
  }
  if (state === "body" && /^\[(system|user|assistant)\]\s*$/.test(line)) return [[["role", line]], "body"];
  const found = [];
  let rest = line;
  while (rest) {
    if (state === "body") {
      const at = rest.search(OPENS);
      if (at < 0) {
        found.push(["", rest]);
        break;
      }
      if (at) found.push(["", rest.slice(0, at)]);
      rest = rest.slice(at);
      [state] = KINDS[rest.slice(0, 2)];
    }
    // Not before the mark's own beginning is over: {{}} is closed, {{} is not.
    const begun = rest.startsWith("{") && OPENS.test(rest.slice(0, 2)) ? 2 : 0;
    const end = rest.indexOf(CLOSES[state], begun);
    const length = end < 0 ? rest.length : end + 2;
    found.push([state, rest.slice(0, length)]);
    rest = rest.slice(length);
    if (end >= 0) state = "body";
  }
  return [found, state];
}

// Keeps the layer as the text area is: only the rows that have changed are made anew.
export function painter(text, layer) {
  let rows = []; // of each line: its text, the states before and after it, its element
  let faulty = new Set();

  function row(line, before) {
    const [found, after] = pieces(line, before);
    const kind = before === "head" || (before === "start" && after === "head") ? "row in-head" : "row";
    const last = before === "head" && after === "body" ? `${kind} last` : kind;
    return { line, before, after, element: make("div", { class: last }, found.map(([name, said]) => (name ? make("span", { class: `j-${name}` }, said) : said))) };
  }

  function paint() {
    const lines = text.value.split("\n");
    let start = 0;
    while (start < rows.length && start < lines.length && rows[start].line === lines[start]) start += 1;
    let end = 0; // lines at the end that may stay
    while (end < rows.length - start && end < lines.length - start && rows.at(-1 - end).line === lines.at(-1 - end)) end += 1;
    const made = [];
    let state = start ? rows[start - 1].after : "start";
    for (let place = start; place < lines.length; place += 1) {
      const kept = lines.length - place <= end ? rows[rows.length - (lines.length - place)] : null;
      if (kept && kept.before === state) break;
      made.push(row(lines[place], state));
      state = made.at(-1).after;
    }
    const stay = lines.length - start - made.length;
    const gone = rows.splice(start, rows.length - start - stay, ...made);
    for (const one of gone) one.element.remove();
    const next = rows[start + made.length]?.element ?? null;
    const fragment = document.createDocumentFragment();
    fragment.append(...made.map((one) => one.element));
    layer.insertBefore(fragment, next);
    mark(faulty);
  }

  function mark(lines) {
    for (const line of faulty) rows[line - 1]?.element.classList.remove("faulty");
    for (const one of layer.querySelectorAll(".faulty")) one.classList.remove("faulty");
    faulty = lines;
    for (const line of lines) rows[line - 1]?.element.classList.add("faulty");
  }

  return { paint, mark, row: (line) => rows[line - 1]?.element };
}
