"use strict";
// The page is whole without this: here tables learn to sort, and topics to be found.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const valueOf = (row, key) => row.cells[key]?.dataset.value ?? row.cells[key]?.textContent.trim() ?? "";
  const isNone = (text) => text === "" || text === "–";

  function sortBy(table, head, key) {
    const rows = [...table.tBodies[0].rows];
    const isNumber = rows.every((row) => isNone(valueOf(row, key)) || !Number.isNaN(Number(valueOf(row, key))));
    const before = head.getAttribute("aria-sort");
    const direction = before ? (before === "ascending" ? "descending" : "ascending") : isNumber ? "descending" : "ascending";
    const sign = direction === "ascending" ? 1 : -1;
    rows.sort((one, other) => {
      const a = valueOf(one, key), b = valueOf(other, key);
      if (isNone(a) || isNone(b)) return isNone(a) - isNone(b);
      return sign * (isNumber ? Number(a) - Number(b) : a.localeCompare(b, undefined, { numeric: true }));
    });
    all("th", table.tHead).forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", direction);
    table.tBodies[0].append(...rows);
  }

  for (const table of all("table.sortable")) {
    for (const head of all("th[data-key]", table)) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => sortBy(table, head, Number(head.dataset.key)));
    }
  }

  const form = document.getElementById("filter");
  const list = document.getElementById("list");
  const topics = all(".topic", list);
  const [text, system, order, count, whose] = ["text", "system", "order", "count", "whose"].map((id) => document.getElementById(id));
  const words = new Map();
  const textOf = (topic) => {
    if (!words.has(topic)) words.set(topic, topic.textContent.toLowerCase());
    return words.get(topic);
  };
  const current = () => system.value || form.dataset.shown;
  const pickOf = (topic, number = current()) => all(".pick", topic).find((pick) => pick.dataset.system === number);
  const gainsOf = (topic) => (pickOf(topic)?.dataset.gains ?? "").split(" ").map((gain) => (gain === "" ? null : Number(gain)));
  const signed = (gain) => {
    const digits = Math.abs(gain).toFixed(3);
    return (Number(digits) === 0 ? "" : gain > 0 ? "+" : "−") + digits;
  };

  function filter() {
    const wanted = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const topic of topics) topic.hidden = !wanted.every((word) => textOf(topic).includes(word)) || (system.value !== "" && !pickOf(topic));
    const shown = topics.filter((topic) => !topic.hidden).length;
    count.value = shown === topics.length ? `${shown} topics` : `${shown} of ${topics.length} topics`;
  }

  function arrange() {
    const [dimension, sign] = order.value.split(" ").map(Number);
    const gain = (topic) => gainsOf(topic)[dimension] ?? null;
    const sorted = [...topics];
    if (order.value !== "") {
      sorted.sort((one, other) => {
        const a = gain(one), b = gain(other);
        return a === null || b === null ? (a === null) - (b === null) : sign * (a - b);
      });
    }
    list.append(...sorted);
  }

  function choose() {
    for (const topic of topics) {
      const pick = pickOf(topic);
      if (pick) pick.checked = true;
      topic.querySelector(".now").replaceChildren(...(pick ? gainsOf(topic) : []).map((gain) => {
        const shown = document.createElement("span");
        shown.className = `gain ${gain > 0 ? "up" : gain < 0 ? "down" : ""}`;
        shown.textContent = gain === null ? "–" : signed(gain);
        return shown;
      }));
    }
    const label = topics.map((topic) => pickOf(topic)).find(Boolean)?.nextElementSibling;
    if (label && whose) whose.replaceChildren(...[...label.childNodes].map((node) => node.cloneNode(true)));
    filter();
    arrange();
  }

  if (topics.length) {
    form.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());
    text.addEventListener("input", filter);
    system.addEventListener("change", choose);
    order.addEventListener("change", arrange);
    filter();
  }

  for (const link of all("a[data-system]")) {
    link.addEventListener("click", () => {
      const topic = document.querySelector(link.getAttribute("href"))?.closest(".topic");
      if (!topic) return;
      topic.hidden = false;
      topic.open = true;
      const pick = pickOf(topic, link.dataset.system);
      if (pick) pick.checked = true;
    });
  }
})();
