// Purging, softly or not, and refreshing what the inspector looks at. Where this larder has no such requests, nothing of it is shown.

import { Refused, ask, askJson, order } from "./admin_api.js";
import { isolated } from "./plain_text.js";
import { count } from "./quantities.js";
import { Table } from "./table.js";
import { button } from "./origin_orders.js";

const $ = id => document.getElementById(id);

// 404 and 405 say that there is no such path; 403 that there is one, for who has rights.
async function hasPath(path) {
  try {
    await ask(path, { mayAsk: false });
    return true;
  } catch (error) {
    return error instanceof Refused && error.status !== 404 && error.status !== 405;
  }
}

const responses = n => (n === 1 ? "1 response" : `${count(n)} responses`);

const ORDERS = {
  try: { path: "purge", body: url => ({ url, dry_run: true, samples: 0 }), words: told => `${responses(told.matched)} would go.` },
  soft: { path: "purge", body: url => ({ url, soft: true }), words: told => `${responses(told.softened)} made stale.` },
  purge: { path: "purge", body: url => ({ url }), words: told => `${responses(told.dropped)} purged.` },
  refresh: { path: "refresh", body: url => ({ url }), words: told => `${responses(told.queued)} to be asked for anew.` },
};
const PROGRESS_EVERY_MS = 1000, PROGRESS_LOOKS_MAX = 120;

export class PurgeOrders {
  // `done()`: what is stored may be another now.
  constructor(done) {
    this.done = done;
    this.isThere = null;
    for (const pressed of document.querySelectorAll("[data-order]")) pressed.addEventListener("click", () => this.act(pressed.dataset.order, pressed));
    this.tags = new Table($("tags"), "Tags of what is stored", [{ head: "Tag", kind: "long" }, { head: "Field" }, { head: "URLs", kind: "n" }, { head: "Objects", kind: "n" }, { head: "Order", kind: "act" }], "none");
    $("tags-form").addEventListener("submit", event => {
      event.preventDefault();
      this.listTags();
    });
  }

  // Shows what there is.
  async show(url) {
    this.url = url;
    this.isThere ??= { refresh: await hasPath("refresh"), tags: await hasPath("tags") };
    $("orders").hidden = !this.isThere.refresh;
    $("tags-panel").hidden = !this.isThere.tags;
  }

  hide() {
    this.url = null;
    $("orders").hidden = true;
  }

  async act(name, pressed) {
    const { path, body, words } = ORDERS[name];
    pressed.disabled = true;
    try {
      const told = await order(path, body(this.url));
      this.say(words(told), false, told.notes);
      if (name === "refresh") await this.followRefresh();
      this.done();
    } catch (error) {
      this.say(error.message, true);
    }
    pressed.disabled = false;
    pressed.focus();
  }

  // Until it is over, or this page has looked often enough.
  async followRefresh() {
    for (let look = 0; look < PROGRESS_LOOKS_MAX; look++) {
      const told = await askJson("refresh");
      if (!told.running) {
        this.say(`${responses(told.done)} asked for anew, ${count(told.failed)} failed.`, told.failed > 0, told.stopped ? [told.stopped] : []);
        return;
      }
      await new Promise(resolve => setTimeout(resolve, PROGRESS_EVERY_MS));
    }
  }

  say(sentence, isBad, notes = []) {
    const line = $("orders-said");
    line.className = isBad ? "bad" : "";
    line.setAttribute("role", "status");
    line.replaceChildren(isolated([sentence, ...(notes ?? []).map(note => `Note: ${note}.`)].join(" ")));
  }

  async listTags() {
    try {
      const prefix = new FormData($("tags-form")).get("prefix");
      const told = await askJson(`tags?limit=50&prefix=${encodeURIComponent(prefix)}`);
      this.tags.setCaption(`Tags of what is stored: ${count(told.tags.length)} of ${count(told.total)}, most objects first`);
      this.tags.update(told.tags.map(tag => ({
        key: `${tag.field} ${tag.tag}`,
        cells: [tag.tag, tag.field, count(tag.urls), count(tag.objects)],
        acts: () => button("purge", `tag ${tag.tag}`, () => order("purge", { tags: [tag.tag] })),
      })));
    } catch (error) {
      this.say(error.message, true);
    }
  }
}
