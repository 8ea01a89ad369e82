// The page of a run, which is a file of whoever made it: it is shown in a frame of no origin, which can ask nobody.

import { answered } from "./ask.js";
import { make } from "./draw.js";

const at = (id) => document.getElementById(id);
const name = decodeURIComponent(location.pathname.split("/")[2]);

at("name").textContent = `Page of ${name}`;
document.title = `${name}: fairagent studio`;
try {
  const page = await (await answered(`/api/runs/${encodeURIComponent(name)}/page`)).text();
  const frame = make("iframe", { src: "/frame", sandbox: "allow-scripts", title: `The page of ${name}` });
  const loaded = new Promise((done) => frame.addEventListener("load", done, { once: true }));
  at("report").append(frame);
  await loaded;
  // To whatever origin: it has none.
  frame.contentWindow.postMessage(page, "*");
  at("state").textContent = "";
} catch (error) {
  at("state").textContent = "";
  at("error").replaceChildren(make("p", { class: "notice" }, error.message));
}
