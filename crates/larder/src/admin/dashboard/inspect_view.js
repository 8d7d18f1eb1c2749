// The inspector: what larder would do with a request, what is stored of its URL, and what can be done about that.

import { askJson } from "./admin_api.js";
import { explanation, variants } from "./explained.js";
import { PurgeOrders } from "./purge_orders.js";
import { say } from "./said.js";
import { Table } from "./table.js";

const $ = id => document.getElementById(id);

export class InspectView {
  constructor() {
    this.variants = new Table($("variants"), "What is stored under this key", [{ head: "Number" }, { head: "Status" }, { head: "Vary" }, { head: "Encoding" }, { head: "Size", kind: "n" },
      { head: "Age", kind: "n" }, { head: "Fresh" }, { head: "Hits", kind: "n" }, { head: "ETag", kind: "long" }, { head: "Where" }], "nothing");
    this.orders = new PurgeOrders(() => this.look());
    $("inspect-form").addEventListener("submit", event => {
      event.preventDefault();
      this.look();
    });
  }

  // Another page leads here.
  inspect(url, method) {
    const form = $("inspect-form");
    form.elements.url.value = url;
    if ([...form.elements.method.options].some(option => option.value === method)) form.elements.method.value = method;
    location.hash = "#inspect";
    this.look();
  }

  async look() {
    const form = new FormData($("inspect-form"));
    const query = new URLSearchParams({ url: form.get("url"), method: form.get("method") });
    for (const line of form.get("headers").split("\n")) if (line.trim() !== "") query.append("header", line.trim());
    if (form.get("client").trim() !== "") query.set("client", form.get("client").trim());
    if (form.get("ahead") !== "0") query.set("as_if_ms", form.get("ahead"));
    try {
      const told = await askJson(`explain?${query}`);
      $("explained").replaceChildren(explanation(told));
      this.variants.update(variants(told));
      $("explained").hidden = $("variants-panel").hidden = false;
      say(`Would be: ${told.would_be}`);
      await this.orders.show(form.get("url"));
    } catch (error) {
      // What stands there is about another request, and orders would be.
      $("explained").hidden = $("variants-panel").hidden = true;
      this.orders.hide();
      say(error.message, true);
    }
  }
}
