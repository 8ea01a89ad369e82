// A button that puts a text on the clipboard.

import { make } from "./draw.js";

// `said` is the text, or a function that gives it.
export function copyButton(what, said) {
  const button = make("button", { type: "button", "aria-label": `Copy ${what}`, onclick: async () => {
    await navigator.clipboard.writeText(typeof said === "function" ? said() : said);
    button.textContent = "Copied";
  } }, "Copy");
  return button;
}
