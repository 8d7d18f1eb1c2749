// Reading along at `GET /log`: a line of JSON for each exchange that is over, without an end.

import { ask } from "./admin_api.js";

// Calls `told` with each event, and with `{ lost: N }` for what was left out, until `signal` is aborted. Ends with an error when larder does.
export async function readAlong({ query, rate, signal, told }) {
  const answer = await ask(`log?rate=${rate}&q=${encodeURIComponent(query)}`, { signal });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw new Error("larder has ended the log");
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    // A line that never ends is none of ours.
    if (rest.length > 1 << 20) rest = "";
    for (const line of lines) if (line !== "") told(JSON.parse(line));
  }
}

// One stream at a time for a page that can be begun, stopped, and left.
export class Following {
  constructor(said) {
    this.said = said;
    this.abort = null;
  }

  get goesOn() {
    return this.abort !== null;
  }

  stop(sentence) {
    this.abort?.abort();
    this.abort = null;
    if (sentence) this.said(sentence, false);
  }

  async begin(query, rate, told) {
    this.stop();
    const abort = new AbortController();
    this.abort = abort;
    try {
      await readAlong({ query, rate, signal: abort.signal, told });
    } catch (error) {
      if (abort.signal.aborted) return;
      // Whatever was wrong with a line, nobody reads what comes behind it.
      abort.abort();
      this.abort = null;
      this.said(`Stopped: ${error.message}`, true);
    }
  }
}
