// The page as a whole: which part of it is shown, and when larder is asked again. A part that nobody sees asks for nothing.

import { askJson, forgetToken, hasToken } from "./admin_api.js";
import { HistoryFeed } from "./history_feed.js";
import { InspectView } from "./inspect_view.js";
import { LogView } from "./log_view.js";
import { OriginsView } from "./origins_view.js";
import { OverviewView } from "./overview_view.js";
import { plain } from "./plain_text.js";
import { span } from "./quantities.js";
import { say, unsay } from "./said.js";
import { StoreView } from "./store_view.js";
import { TopView } from "./top_view.js";

const $ = id => document.getElementById(id);
const SILENT = "larder does not answer";
// Who wants less to move gets a new picture now and then.
const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
const HISTORY_EVERY_MS = { 1: isStill ? 10_000 : 1_000, 60: 20_000 };
const STATUS_EVERY_MS = isStill ? 10_000 : 2_000;

const feed = new HistoryFeed();
const inspect = new InspectView();
const views = {
  overview: new OverviewView(feed), store: new StoreView(feed), origins: new OriginsView(), top: new TopView(),
  log: new LogView((url, method) => inspect.inspect(url, method)), inspect,
};
let shown = null;
const due = { history: 0, status: 0 };

function show() {
  const wanted = location.hash.slice(1);
  const name = Object.hasOwn(views, wanted) ? wanted : "overview";
  if (name === shown) return;
  views[shown]?.leave?.();
  shown = name;
  for (const id of Object.keys(views)) $(id).hidden = id !== name;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  say("");
  document.title = `${name} – ${$("name").textContent}`;
  askAtOnce();
}

function askAtOnce() {
  due.history = due.status = 0;
}

const step = () => (shown === "overview" ? views.overview.step : 1);

async function renewHistory() {
  const now = step();
  if (await feed.renew(now)) due.history = 0;
  if (now === step()) views[shown].drawHistory?.();
}

async function renewStatus() {
  const status = await askJson("status", { mayAsk: false });
  $("name").textContent = plain(status.server_name);
  $("about").textContent = `larder ${status.version}, up ${span(status.uptime_seconds)}, ${status.workers} ${status.workers === 1 ? "worker" : "workers"}`;
  $("forget-token").hidden = !hasToken();
  views[shown].drawStatus?.(status);
}

// One after the other, and slower while nobody answers.
async function go() {
  let failures = 0;
  for (;;) {
    const view = views[shown], now = performance.now();
    if (!document.hidden) {
      try {
        if (view.drawHistory && now >= due.history) {
          due.history = now + HISTORY_EVERY_MS[step()];
          await renewHistory();
        }
        if (now >= due.status) {
          due.status = now + STATUS_EVERY_MS;
          await renewStatus();
        }
        if (failures > 0) unsay(SILENT);
        failures = 0;
      } catch (error) {
        failures++;
        say(`${SILENT}: ${error.message}`, true);
      }
    }
    await new Promise(resolve => setTimeout(resolve, Math.min(100 * 2 ** failures, 5_000)));
  }
}

addEventListener("hashchange", show);
addEventListener("larder-range", askAtOnce);
addEventListener("larder-changed", askAtOnce);
addEventListener("larder-token", () => { $("forget-token").hidden = false; });
addEventListener("pagehide", () => views[shown]?.leave?.());
document.addEventListener("visibilitychange", askAtOnce);
$("forget-token").addEventListener("click", () => {
  forgetToken();
  $("forget-token").hidden = true;
  say("The token is forgotten.");
});
$("skip").addEventListener("click", event => {
  event.preventDefault();
  $("pages").focus();
});
show();
go();
