// Here tables learn to sort, and topics to be found and opened; all but the topics is whole without this.
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
  const numbers = new Map(topics.map((topic, number) => [topic, number]));
  const [text, system, order, count, whose] = ["text", "system", "order", "count", "whose"].map((id) => document.getElementById(id));
  const words = new Map();
  const textOf = (topic) => {
    if (!words.has(topic)) words.set(topic, Topics.textOf(numbers.get(topic)));
    return words.get(topic);
  };
  const current = () => Number(system.value || form.dataset.shown);
  const panelOf = (topic) => Topics.topics[numbers.get(topic)].panels.find((panel) => panel.system === current());
  const gainsOf = (topic) => panelOf(topic)?.gains ?? [];
  const signed = (gain) => {
    const digits = Math.abs(gain).toFixed(3);
    return (Number(digits) === 0 ? "" : gain > 0 ? "+" : "−") + digits;
  };

  function open(topic, chosen = current()) {
    if (!topic.querySelector(".inside")) {
      const inside = document.createElement("div");
      inside.className = "inside";
      inside.append(...Topics.draw(numbers.get(topic), chosen));
      topic.append(inside);
    }
    const pick = all(".pick", topic).find((one) => Number(one.dataset.system) === chosen);
    if (pick) pick.checked = true;
  }

  function show(topic, chosen) {
    open(topic, chosen);
    topic.hidden = false;
    topic.open = true;
    topic.scrollIntoView({ behavior: "instant" });
  }

  function filter() {
    const wanted = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const topic of topics) topic.hidden = !wanted.every((word) => textOf(topic).includes(word)) || (system.value !== "" && !panelOf(topic));
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
      if (topic.querySelector(".inside")) open(topic);
      topic.querySelector(".now").replaceChildren(...gainsOf(topic).map((gain) => {
        const shown = document.createElement("span");
        shown.className = `gain ${gain > 0 ? "up" : gain < 0 ? "down" : ""}`;
        shown.textContent = gain === null ? "–" : signed(gain);
        return shown;
      }));
    }
    if (whose) whose.replaceChildren(Topics.system(current()));
    filter();
    arrange();
  }

  // #topic=ID opens a topic, &system=NAME at a system; what is opened has that address.
  const names = all("option", system).filter((one) => one.value !== "");
  function follow() {
    const asked = new URLSearchParams(location.hash.slice(1));
    const number = Topics.topics.findIndex((topic) => topic.id === asked.get("topic"));
    if (number < 0) return;
    const named = names.find((one) => one.textContent === asked.get("system"));
    show(topics[number], named ? Number(named.value) : undefined);
  }

  if (topics.length) {
    form.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());
    text.addEventListener("input", filter);
    system.addEventListener("change", choose);
    order.addEventListener("change", arrange);
    for (const topic of topics) {
      topic.addEventListener("toggle", () => topic.open && open(topic));
      topic.querySelector("summary").addEventListener("click", () => {
        if (!topic.open) history.replaceState(null, "", `#topic=${encodeURIComponent(Topics.topics[numbers.get(topic)].id)}`);
      });
    }
    filter();
    follow();
    addEventListener("hashchange", follow);
  }
})();
