// The buttons that take an address out, bring it back, and weigh it: orders that the admin address has for this.

import { order } from "./admin_api.js";
import { say } from "./said.js";

export function button(words, about, act) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = words;
  made.setAttribute("aria-label", `${words}: ${about}`);
  made.addEventListener("click", async () => {
    made.disabled = true;
    try {
      await act();
      say(`Done: ${words}, ${about}`);
      dispatchEvent(new Event("larder-changed"));
    } catch (error) {
      say(`Not done: ${words}, ${about}: ${error.message}`, true);
    }
    made.disabled = false;
    made.focus();
  });
  return made;
}

function group(...content) {
  const made = document.createElement("div");
  made.className = "buttons";
  made.append(...content);
  return made;
}

// For one address of an origin.
export function addressOrders(origin, address) {
  const about = `${origin} ${address}`;
  const send = query => order(`origins/${encodeURIComponent(origin)}?address=${encodeURIComponent(address)}&${query}`);
  const weight = document.createElement("input");
  Object.assign(weight, { type: "number", min: 0, max: 1000, placeholder: "weight" });
  weight.setAttribute("aria-label", `Weight of ${about}; empty: as configured`);
  const set = () => {
    if (!weight.checkValidity()) throw new Error("a weight is 0 to 1000");
    return send(`weight=${weight.value === "" ? "auto" : weight.value}`);
  };
  const words = ["drain", "down", "up", "auto"];
  return group(...words.map(word => button(word, about, () => send(`set=${word}`))), weight, button("weigh", about, async () => set()));
}

// For one backend of a VCL.
export function backendOrders(backend) {
  const send = word => order(`backends/${encodeURIComponent(backend)}/health?set=${word}`);
  return group(...["sick", "healthy", "auto"].map(word => button(word, `backend ${backend}`, () => send(word))));
}

export function programOrders(name) {
  return group(button("use", `VCL ${name}`, () => order(`vcl/${encodeURIComponent(name)}/use`)));
}
