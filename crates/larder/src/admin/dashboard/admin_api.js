// Asking the admin address that this page came from. What needs rights sends the token as the commands do, in a header: no other page can have a
// browser send it. The token is asked for when it is needed first.

import { askForToken } from "./token_dialog.js";

const KEPT_AS = "larder-token";

export class Refused extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

export const hasToken = () => sessionStorage.getItem(KEPT_AS) !== null;
export const forgetToken = () => sessionStorage.removeItem(KEPT_AS);

async function send(path, options) {
  const headers = { ...options.headers };
  const token = sessionStorage.getItem(KEPT_AS);
  if (token !== null) headers.Authorization = `Bearer ${token}`;
  return fetch(path, { cache: "no-store", credentials: "omit", redirect: "error", ...options, headers });
}

// The sentence of an answer that is no success: JSON's `error`, else the text.
async function sentenceOf(answer) {
  const text = (await answer.text()).slice(0, 2000).trim();
  try {
    return JSON.parse(text).error ?? text;
  } catch {
    return text || `status ${answer.status}`;
  }
}

// The answer, if it is a success. `options.mayAsk: false`: without rights it is an error, and nobody is asked for a token.
export async function ask(path, options = {}) {
  const { mayAsk = true, ...sent } = options;
  for (;;) {
    const answer = await send(path, sent);
    if (answer.ok) return answer;
    const sentence = await sentenceOf(answer);
    if (answer.status !== 403 || !mayAsk) throw new Refused(answer.status, sentence);
    const why = hasToken() ? "This token is refused." : sentence;
    const given = await askForToken(why);
    if (given === null) throw new Refused(403, sentence);
    sessionStorage.setItem(KEPT_AS, given);
    dispatchEvent(new Event("larder-token"));
  }
}

export const askJson = async (path, options) => (await ask(path, options)).json();

export const order = (path, body) => askJson(path, {
  method: "POST",
  ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } }),
});
