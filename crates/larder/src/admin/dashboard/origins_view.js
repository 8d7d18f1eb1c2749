// Origins and their addresses, what failed of them by kind, and the programs and backends of VCL, with what an operator can order.

import { addressOrders, backendOrders, programOrders } from "./origin_orders.js";
import { count, span } from "./quantities.js";
import { Table } from "./table.js";

const $ = id => document.getElementById(id);

const probeWords = probe => (probe ? `${probe.good} of ${probe.window} good (${probe.threshold} needed), last: ${probe.last}` : "–");

function stateWords(address) {
  const ordered = address.ordered === "auto" ? "" : ", ordered";
  const back = address.back_in_ms == null ? "" : ` for ${span(Math.ceil(address.back_in_ms / 1000))}`;
  return `${address.state}${back}${ordered}`;
}

function weightWords(address) {
  const share = address.share_percent === 100 ? "" : `, ${address.share_percent} % of it`;
  return `${address.weight}${address.weight_ordered ? ", ordered" : ""}${address.backup ? ", backup" : ""}${share}`;
}

export class OriginsView {
  constructor() {
    const numbers = (...heads) => heads.map(head => ({ head, kind: "n" }));
    this.addresses = new Table($("addresses"), "Addresses", [{ head: "Origin" }, { head: "Address" }, { head: "State" }, { head: "Weight" }, { head: "Probes", kind: "long" },
      ...numbers("In use", "Idle", "Failures"), { head: "Order", kind: "acts" }], "no origin has an address yet");
    this.faults = new Table($("faults"), "Failures by origin and kind, since the start", [{ head: "Origin" }, { head: "Balance" }, ...numbers("Connections", "Waiting", "Failures"),
      { head: "By kind" }], "there is no [origin.NAME]");
    this.programs = new Table($("programs"), "VCL", [{ head: "Name" }, { head: "State" }, { head: "Labels" }, { head: "What it is" }, ...numbers("Under way"), { head: "Order", kind: "acts" }], "none");
    this.backends = new Table($("backends"), "Backends of the VCL that is active", [{ head: "Name" }, { head: "Health" }, { head: "Probes" }, { head: "Order", kind: "acts" }], "none");
  }

  drawStatus({ origins, vcls }) {
    this.addresses.update(origins.flatMap(origin => origin.addresses.map(address => ({
      key: `${origin.name}\n${address.address}`,
      cells: [origin.name, address.address, stateWords(address), weightWords(address), probeWords(address.probe), count(address.in_use), count(address.idle), count(address.failures)],
      acts: () => addressOrders(origin.name, address.address),
    }))));
    this.faults.update(origins.map(origin => {
      const kinds = Object.entries(origin.errors_by_kind).filter(([, times]) => times > 0).map(([kind, times]) => `${kind} ${count(times)}`).join(", ");
      return { key: origin.name, cells: [origin.name, origin.balance, `${count(origin.connections)} of ${count(origin.max_connections)}`, count(origin.queued), count(origin.errors), kinds || "none"] };
    }));
    $("programs-panel").hidden = $("backends-panel").hidden = vcls.length === 0;
    this.programs.update(vcls.map(vcl => ({
      key: vcl.name,
      cells: [vcl.name, vcl.active ? "active" : vcl.warm ? "warm" : "cold", vcl.labels.join(", "), vcl.summary, count(vcl.under_way)],
      acts: () => programOrders(vcl.name),
    })));
    const active = vcls.find(vcl => vcl.active);
    this.backends.update((active?.backends ?? []).map(backend => ({
      key: backend.name,
      cells: [backend.name, `${backend.healthy ? "healthy" : "sick"}${backend.ordered && backend.ordered !== "auto" ? ", ordered" : ""}`, probeWords(backend.probe)],
      acts: () => backendOrders(backend.name),
    })));
  }
}
