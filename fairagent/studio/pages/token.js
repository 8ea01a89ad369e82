// The token: it comes after the # of the address that `fairagent serve` prints, is kept in the store of this tab, and sent
// in a header. No cookie: a browser would send that to every port of this machine. A tab without a token asks the others
// of the studio, which no page of another origin or port can do.

import { make } from "./draw.js";

const KEPT = "fairagent tokens";
const FORM = /^[\w-]{1,100}$/;
const PATIENCE = 500;
const tabs = new BroadcastChannel(KEPT);
const refused = new Set();
let tokens = stored(); // the first is tried, the others if it is refused
let proven = null;

function stored() {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT) ?? "[]").filter((one) => FORM.test(one));
  } catch {
    return [];
  }
}

// Takes a token out of the address, and tries it first from now on; whether it is another than before.
function taken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given === null) return false;
  history.replaceState(history.state, "", location.pathname + location.search);
  if (!FORM.test(given) || given === tokens[0]) return false;
  keep([given, ...tokens.filter((one) => one !== given)]);
  return true;
}

function keep(some) {
  tokens = some.slice(0, 2);
  sessionStorage.setItem(KEPT, JSON.stringify(tokens));
}

// The token of this tab, or else of another.
export async function held() {
  if (!tokens.length) await fromOtherTab();
  return tokens[0];
}

// `fetch` with the token.
export async function asked(path, options = {}) {
  for (;;) {
    const token = document.documentElement.hasAttribute("data-guarded") ? await held() : tokens[0];
    const headers = { ...options.headers, ...(token && { authorization: `Bearer ${token}` }) };
    const reply = await fetch(path, { ...options, headers, credentials: "omit" });
    if (reply.status !== 401) {
      if (token && proven !== token) {
        proven = token;
        keep([token]);
      }
      return reply;
    }
    if (!token) {
      lacking();
      return reply;
    }
    refused.add(token);
    keep(tokens.filter((one) => one !== token));
  }
}

function fromOtherTab() {
  return new Promise((done) => {
    const heard = ({ data }) => {
      if (!FORM.test(data?.token) || refused.has(data.token)) return;
      if (!tokens.length) keep([data.token]);
      end();
    };
    const end = () => {
      clearTimeout(timer);
      tabs.removeEventListener("message", heard);
      done();
    };
    const timer = setTimeout(end, PATIENCE);
    tabs.addEventListener("message", heard);
    tabs.postMessage({ wanted: true });
  });
}

function lacking() {
  if (document.getElementById("lacking")) return;
  const field = make("input", { id: "lacking", type: "password", autocomplete: "off" });
  const form = make(
    "form",
    { class: "notice", role: "alert" },
    make("p", {}, "This tab has no token, or that of a server which has ended. Open the address that `fairagent serve` has printed, or paste its token:"),
    make("label", {}, "Token ", field),
    " ",
    make("button", { type: "submit" }, "Use it"),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const given = field.value.trim().split("token=").at(-1);
    if (!FORM.test(given)) return;
    keep([given]);
    location.reload();
  });
  document.getElementById("main").prepend(form);
}

tabs.addEventListener("message", ({ data }) => {
  if (data?.wanted && proven) tabs.postMessage({ token: proven });
});
// Another token in the address of a page that is open loads nothing by itself.
addEventListener("hashchange", () => {
  if (taken()) location.reload();
});
taken();
