// Looks at the dashboard in a real Chromium: every page in light, in dark and on a phone, judged by axe-core; orders, token and log are used as a
// person would; texts of strangers stay texts. What is wrong is printed, a line each, and the exit code is 1.
//
//   node visit.mjs   with DASHBOARD (its URL), TOKEN, TOOLS (a folder whose node_modules has playwright-core and axe-core), EXPLAINED (a URL of the
//                    site), ORIGIN (the name of its origin), and PICTURES (a folder for screenshots, if wanted)

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const { DASHBOARD, TOKEN, TOOLS, EXPLAINED, ORIGIN, PICTURES } = process.env;
const require = createRequire(join(TOOLS, "package.json"));
const { chromium } = require("playwright-core");
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const DESK = { width: 1100, height: 860 };
const MODES = [
  { name: "light", colorScheme: "light", viewport: DESK },
  { name: "dark", colorScheme: "dark", viewport: DESK },
  { name: "phone", colorScheme: "light", viewport: { width: 375, height: 720 }, isMobile: true, hasTouch: true },
];
const PATIENCE = 20_000;
const wrong = [];

function expect(isSo, sentence) {
  if (!isSo) wrong.push(sentence);
}

async function judge(page, what) {
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  for (const { id, help, nodes } of violations) wrong.push(`${what}: ${id}: ${help}: ${nodes.slice(0, 3).map(node => node.html.slice(0, 200)).join(" | ")}`);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect(wide <= 0, `${what}: the page is ${wide} px wider than its window`);
}

const picture = (page, name) => (PICTURES ? page.screenshot({ path: join(PICTURES, `dashboard-${name}.png`) }) : null);

async function goTo(page, name) {
  await page.click(`nav a[href="#${name}"]`);
  await page.waitForSelector(`#${name}:not([hidden])`);
}

// What is drawn, and what a keyboard makes of it.
async function overview(page, mode) {
  await page.waitForFunction(() => document.querySelector("#chart-requests .plot path.line.s0[d^='M']"), null, { timeout: PATIENCE });
  await page.waitForFunction(() => /^larder \d/.test(document.getElementById("about").textContent), null, { timeout: PATIENCE });
  for (const chart of await page.$$("#overview .plot")) {
    const labels = await chart.$$eval("text[text-anchor=end]", all => all.map(one => one.textContent));
    expect(labels.length >= 2 && new Set(labels).size === labels.length, `${mode}: words of an axis: ${labels}`);
    const cut = await chart.$$eval("text[text-anchor=end]", all => all.filter(one => one.getBBox().x < 0).length);
    expect(cut === 0, `${mode}: ${cut} words of an axis are cut: ${labels}`);
  }
  const plot = page.locator("#chart-requests .plot");
  await plot.focus();
  await page.keyboard.press("End");
  const newest = await plot.getAttribute("aria-valuetext");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowLeft");
  const earlier = await plot.getAttribute("aria-valuetext");
  expect(/from the store .*fetched .*passed .*failed/.test(earlier) && earlier !== newest, `${mode}: the arrow keys read out "${newest}", then "${earlier}"`);
  await page.keyboard.press("Escape");
  await page.click("#chart-requests summary");
  await page.waitForSelector("#chart-requests table", { timeout: PATIENCE });
  const rows = await page.$$eval("#chart-requests table tbody tr", all => all.length);
  expect(rows >= 2, `${mode}: the table beside the chart has ${rows} rows`);
  await judge(page, `${mode} overview with a table`);
  await page.click("#chart-requests summary");
  await page.check("input[name=range][value='86400']");
  await page.waitForTimeout(500);
  await judge(page, `${mode} overview of a day`);
  await page.check("input[name=range][value='300']");
  const annotations = await page.locator("#annotations tbody").innerText();
  expect(/started/.test(annotations), `${mode}: what happened: ${annotations}`);
}

async function origins(page, mode) {
  const row = page.locator("#addresses tbody tr").filter({ hasText: ORIGIN }).first();
  await row.waitFor({ timeout: PATIENCE });
  await judge(page, `${mode} origins`);
  const press = async (name, state) => {
    const button = row.getByRole("button", { name: `${name}:` });
    await button.click();
    await page.waitForFunction(word => document.querySelector("#addresses tbody tr:not([hidden]) td:nth-child(3)").textContent.includes(word), state, { timeout: PATIENCE });
    const focused = await page.evaluate(() => document.activeElement.textContent);
    expect(focused === name, `${mode}: after "${name}" the focus is on "${focused}"`);
  };
  await press("drain", "drained");
  await press("auto", "up");
  expect(/Done: auto/.test(await page.locator("#said").innerText()), `${mode}: what is said of an order`);
}

async function log(page, mode) {
  await page.fill("#log-form input[name=query]", "status >=");
  await page.click("#log-form button[type=submit]");
  await page.waitForFunction(() => document.querySelector("#log-note").className === "bad", null, { timeout: PATIENCE });
  expect(/the query/.test(await page.locator("#log-note").innerText()), `${mode}: what is said of a query that is none`);
  await page.fill("#log-form input[name=query]", "");
  await page.click("#log-form button[type=submit]");
  await page.waitForFunction(() => document.querySelectorAll("#log-lines tbody tr:not([hidden])").length > 10, null, { timeout: PATIENCE });
  await page.waitForFunction(() => document.querySelector("#log-lines").textContent.includes("<img src=x"), null, { timeout: PATIENCE });
  await page.waitForFunction(() => document.querySelector("#log-lines").textContent.includes("\\u{202e}"), null, { timeout: PATIENCE });
  expect((await page.$$("#log-lines img, #log-lines script, #log-lines b")).length === 0, `${mode}: a stranger's text is markup`);
  await page.click("#log-stop");
  await judge(page, `${mode} log`);
}

async function top(page, mode) {
  await page.selectOption("#top-by", "agent");
  await page.click("#top-form button[type=submit]");
  await page.waitForFunction(() => document.querySelectorAll("#top-list tbody tr:not([hidden])").length > 1, null, { timeout: PATIENCE });
  expect((await page.$$("#top-list img, #top-list script")).length === 0, `${mode}: a stranger's text is markup`);
  await page.selectOption("#top-by", "url");
  await page.click("#top-form button[type=submit]");
  await page.waitForFunction(() => document.querySelectorAll("#top-list tbody tr:not([hidden])").length > 2, null, { timeout: PATIENCE });
  await page.waitForTimeout(PICTURES ? 5_000 : 1_200);
  await judge(page, `${mode} top`);
}

async function inspect(page, mode) {
  await page.fill("#inspect-form input[name=url]", EXPLAINED);
  await page.click("#inspect-form button[type=submit]");
  await page.waitForSelector("#explained:not([hidden])", { timeout: PATIENCE });
  expect(/Would be: hit/.test(await page.locator("#explained").innerText()), `${mode}: explained: ${await page.locator("#explained").innerText()}`);
  const stored = await page.locator("#variants tbody tr:not([hidden])").count();
  expect(stored >= 1, `${mode}: ${stored} variants`);
  await order(page, mode, "try", /^\d+ responses? would go\.$/);
  await order(page, mode, "soft", /^\d+ responses? made stale\./);
  await order(page, mode, "refresh", /^\d+ responses? asked for anew, 0 failed\.$/);
  await order(page, mode, "purge", /^\d+ responses? purged\./);
  await page.click("#tags-form button");
  await page.waitForFunction(() => /\d+ of \d+/.test(document.querySelector("#tags caption").textContent), null, { timeout: PATIENCE });
  await judge(page, `${mode} inspect`);
  // What cannot be explained has no orders, least of all those of what was asked before.
  await page.fill("#inspect-form input[name=url]", "ftp://site.test/kept");
  await page.click("#inspect-form button[type=submit]");
  await page.waitForSelector("#explained", { state: "hidden", timeout: PATIENCE });
  expect(await page.locator("#orders, #variants-panel").evaluateAll(all => all.every(one => one.hidden)), `${mode}: orders about another URL stay`);
  await page.fill("#inspect-form input[name=url]", EXPLAINED);
  // Somebody has asked for it again meanwhile.
  await page.waitForTimeout(1_000);
  await page.click("#inspect-form button[type=submit]");
  await page.waitForTimeout(500);
}

async function order(page, mode, name, expected) {
  await page.evaluate(() => { document.getElementById("orders-said").textContent = ""; });
  await page.click(`[data-order=${name}]`);
  await page.waitForFunction(pattern => new RegExp(pattern).test(document.getElementById("orders-said").textContent), expected.source, { timeout: PATIENCE })
    .catch(async () => wrong.push(`${mode}: after "${name}": ${await page.textContent("#orders-said")}`));
}

// The first thing that needs rights asks for the token; a wrong one is asked for again.
async function token(page, mode) {
  await goTo(page, "log");
  await page.click("#log-form button[type=submit]");
  await page.waitForSelector("#token-dialog[open]", { timeout: PATIENCE });
  await judge(page, `${mode} token`);
  await picture(page, `token-${mode}`);
  await page.keyboard.type("a wrong one");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector("#token-why").textContent === "This token is refused.", null, { timeout: PATIENCE });
  await page.fill("#token", TOKEN);
  await page.keyboard.press("Enter");
  await page.waitForSelector("#token-dialog:not([open])", { state: "hidden", timeout: PATIENCE });
  await page.waitForFunction(() => sessionStorage.getItem("larder-token") !== null, null, { timeout: PATIENCE });
  await page.click("#log-stop");
}

const PAGES = { overview, store: page => page.waitForFunction(() => document.querySelectorAll("#memory tbody tr:not([hidden])").length > 3), origins, top, log, inspect };

async function visit(browser, { name: mode, ...options }) {
  const context = await browser.newContext({ ...options, locale: "en-GB", serviceWorkers: "block" });
  const page = await context.newPage();
  page.on("dialog", dialog => { wrong.push(`${mode}: a script of a stranger ran: ${dialog.message()}`); dialog.dismiss(); });
  page.on("pageerror", error => wrong.push(`${mode}: ${error.stack}`));
  page.on("console", line => {
    // A refusal is part of the visit; anything else is not.
    if (line.type() === "error" && !/status of (403|400|404)/.test(line.text())) wrong.push(`${mode}: ${line.text()}`);
  });
  page.on("request", request => expect(request.url().startsWith(DASHBOARD) || request.url().startsWith("data:"), `${mode}: it asks elsewhere: ${request.url()}`));
  await page.goto(DASHBOARD);
  await token(page, mode);
  for (const [name, use] of Object.entries(PAGES)) {
    await goTo(page, name);
    await use(page, mode);
    await judge(page, `${mode} ${name}`);
    await page.evaluate(() => { document.activeElement?.blur(); scrollTo(0, 0); });
    await picture(page, `${name}-${mode}`);
  }
  // No page is called like what every object of the language has.
  await page.evaluate(() => { location.hash = "#constructor"; });
  await page.waitForSelector("#overview:not([hidden])", { timeout: PATIENCE });
  await context.close();
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
try {
  for (const mode of MODES) await visit(browser, mode).catch(error => wrong.push(`${mode.name}: ${error.stack}`));
} finally {
  await browser.close();
}
for (const sentence of wrong) console.log(sentence);
console.log(`looked: ${MODES.length} modes, ${Object.keys(PAGES).length} pages, ${wrong.length} wrong`);
process.exitCode = wrong.length ? 1 : 0;
