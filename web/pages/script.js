// Keeps an open page up to date, and chooses all rows at once. Without it everything works, but
// stands still.
"use strict";

const QUIET_MS = 25000; // the server says something at least every 10 s
const RETRY_MS = 1000;
const RETRY_MAX_MS = 30000;

const place = document.body.dataset.live;
const light = document.getElementById("live");
let source = null;
let failures = 0;
let timer = 0;
let watch = 0;

function say(mood, words) {
  light.hidden = false;
  light.className = "live " + mood;
  // Only what is new is read out.
  if (light.textContent !== words) light.textContent = words;
}

function keyOf(element) {
  return element && (element.dataset.key || element.id);
}

// A log that grows shows its end, unless somebody has scrolled back.
function isAtEnd(each) {
  return each.scrollHeight - each.scrollTop - each.clientHeight < 8;
}

function showEnd(each) {
  if (each.dataset.tail !== undefined) each.scrollTop = each.scrollHeight;
}

// What is not markup any more would lose its focus, its place and its open details.
function swap(region, html) {
  const focused = region.contains(document.activeElement) ? document.activeElement : null;
  const key = keyOf(focused);
  const label = focused && focused.getAttribute("aria-label");
  const checked = new Set([...region.querySelectorAll("input:checked")].map((each) => each.value));
  const known = new Map([...region.querySelectorAll("details")].map((each) => [keyOf(each), each.open]));
  const scrolled = [...region.querySelectorAll(".scroll, pre")].map((each) => [each.scrollLeft, each.scrollTop, isAtEnd(each)]);
  region.innerHTML = html;
  for (const each of region.querySelectorAll("input[type=checkbox]")) each.checked = checked.has(each.value);
  for (const each of region.querySelectorAll("details")) {
    if (known.has(keyOf(each))) each.open = known.get(keyOf(each));
  }
  region.querySelectorAll(".scroll, pre").forEach((each, index) => {
    if (scrolled[index]) [each.scrollLeft, each.scrollTop] = scrolled[index];
    if (!scrolled[index] || scrolled[index][2]) showEnd(each);
  });
  tellLocally(region);
  restoreReadOuts(region);
  if (!focused) return;
  const again = [...region.querySelectorAll("a, button, input, summary, [tabindex]")].find((each) =>
    key ? keyOf(each) === key : label && each.getAttribute("aria-label") === label);
  if (again) again.focus({ preventScroll: true });
}

function isSelecting(region) {
  const chosen = document.getSelection();
  return chosen && !chosen.isCollapsed && region.contains(chosen.anchorNode);
}

const late = new Map(); // what is new where somebody selects text: it waits

function show(parts) {
  for (const [name, html] of Object.entries(parts)) late.set(name, html);
  for (const [name, html] of late) {
    const region = document.getElementById(name);
    if (region && isSelecting(region)) continue;
    late.delete(name);
    if (region) swap(region, html);
  }
}

function heard() {
  failures = 0;
  clearTimeout(watch);
  watch = setTimeout(lost, QUIET_MS);
}

function close() {
  clearTimeout(timer);
  clearTimeout(watch);
  if (source) source.close();
  source = null;
}

function lost() {
  close();
  say("off", "not live: the daemon does not answer");
  const wait = Math.min(RETRY_MAX_MS, RETRY_MS * 2 ** failures) * (0.5 + Math.random() / 2);
  failures += 1;
  timer = setTimeout(again, wait);
}

// A stream does not say why it was refused: whoever is no longer signed in is asked anew.
async function again() {
  try {
    const answer = await fetch(place, { method: "HEAD", cache: "no-store" });
    if ([401, 403, 404].includes(answer.status)) {
      location.reload();
    } else {
      follow();
    }
  } catch {
    lost();
  }
}

function follow() {
  close();
  source = new EventSource(place);
  source.addEventListener("open", () => { heard(); say("on", "live"); });
  source.addEventListener("ping", () => { heard(); show({}); });
  source.addEventListener("parts", (event) => {
    heard();
    say("on", "live");
    show(JSON.parse(event.data));
  });
  source.addEventListener("away", (event) => {
    heard();
    say("off", "not live: " + JSON.parse(event.data));
  });
  source.addEventListener("gone", () => { close(); location.reload(); });
  source.addEventListener("error", lost);
  watch = setTimeout(lost, QUIET_MS);
}

function look() {
  if (document.hidden) {
    close();
    say("", "paused");
  } else {
    failures = 0;
    follow();
  }
}

// A chart's read-out: by pointer, by touch, and by arrow keys. What is drawn is drawn already.
const chosen = new Map(); // by chart: which step, so that it stays when the chart is drawn anew

function stepsOf(plots) {
  const facts = JSON.parse(plots.dataset.chart);
  facts.lines = facts.lines.map(([name, values]) => [name, values.split("|")]);
  return { facts, count: facts.lines.length ? facts.lines[0][1].length : 0 };
}

function localTime(seconds) {
  return new Date(seconds * 1000).toLocaleString(undefined,
    { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
}

function readOut(plots, step, spoken) {
  const { facts, count } = stepsOf(plots);
  const figure = plots.closest("figure");
  const output = figure.querySelector("output");
  if (step === null || !count) {
    chosen.delete(figure.id);
    for (const cross of plots.querySelectorAll(".cross")) cross.setAttribute("d", "");
    return;
  }
  const place = Math.max(0, Math.min(count - 1, step));
  chosen.set(figure.id, place);
  const from = facts.first + place * facts.step;
  const values = facts.lines.map(([name, all]) => name + " " + (all[place] || "–"));
  const marks = facts.marks.filter(([at]) => at >= from && at < from + facts.step).map(([, words]) => words);
  output.setAttribute("aria-live", spoken ? "polite" : "off");
  output.textContent = localTime(from) + ": " + [...values, ...marks].join(", ");
  const x = Math.round((place / Math.max(1, count - 1)) * 1000);
  for (const cross of plots.querySelectorAll(".cross")) cross.setAttribute("d", "M" + x + " 0V100");
}

function plotsOf(event) {
  return event.target instanceof Element ? event.target.closest(".plots") : null;
}

function point(event) {
  const plots = plotsOf(event);
  if (!plots) return;
  const box = plots.querySelector("svg").getBoundingClientRect();
  const { count } = stepsOf(plots);
  readOut(plots, Math.round(((event.clientX - box.left) / box.width) * (count - 1)), false);
}

document.addEventListener("pointermove", point);
document.addEventListener("pointerdown", point);
document.addEventListener("pointerout", (event) => {
  const plots = plotsOf(event);
  if (plots && !plots.contains(event.relatedTarget) && event.pointerType === "mouse") readOut(plots, null, false);
});
document.addEventListener("keydown", (event) => {
  const plots = plotsOf(event);
  if (!plots || plots !== document.activeElement) return;
  const { count } = stepsOf(plots);
  const now = chosen.has(plots.closest("figure").id) ? chosen.get(plots.closest("figure").id) : count - 1;
  const to = { ArrowLeft: now - 1, ArrowRight: now + 1, PageUp: now - 10, PageDown: now + 10, Home: 0, End: count - 1 }[event.key];
  if (event.key === "Escape") readOut(plots, null, false);
  if (to === undefined) return;
  event.preventDefault();
  readOut(plots, to, true);
});

function restoreReadOuts(region) {
  for (const plots of region.querySelectorAll(".plots")) {
    const id = plots.closest("figure").id;
    if (chosen.has(id)) readOut(plots, chosen.get(id), false);
  }
}

// Times are of the reader's own clock; UTC is what the element says, and its title.
function tellLocally(region) {
  for (const each of region.querySelectorAll("time[datetime]")) {
    const at = new Date(each.dateTime);
    if (isNaN(at) || each.dataset.local) continue;
    each.dataset.local = "1";
    const utc = each.dateTime.replace("T", " ").replace("Z", " UTC");
    if (/ago$/.test(each.textContent)) { each.title = utc; continue; }
    const pad = (number) => String(number).padStart(2, "0");
    const day = at.getFullYear() + "-" + pad(at.getMonth() + 1) + "-" + pad(at.getDate());
    const clock = pad(at.getHours()) + ":" + pad(at.getMinutes());
    const old = each.textContent;
    const words = each.dataset.short !== undefined
      ? (old.includes(" ") ? at.toLocaleDateString(undefined, { day: "2-digit", month: "short" }) + " " + clock : clock)
      : (/^\d\d:\d\d:\d\d/.test(old) ? "" : day + " ") + clock + ":" + pad(at.getSeconds());
    each.textContent = words;
    each.title = utc;
  }
}
tellLocally(document);
document.querySelectorAll("pre").forEach(showEnd);
const zone = document.getElementById("zone");
if (zone) zone.textContent = "Times are yours; UTC is in their titles.";

if (place && light) {
  document.addEventListener("visibilitychange", look);
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", (event) => { if (event.persisted) look(); });
  look();
}

const form = document.querySelector("form[data-choose]");
if (form) {
  const boxes = () => [...form.querySelectorAll("input[name=id]")]; // rows are swapped
  const all = document.createElement("input");
  all.type = "checkbox";
  all.setAttribute("aria-label", "all jobs of this page");
  all.addEventListener("change", () => { for (const box of boxes()) box.checked = all.checked; });
  form.addEventListener("change", (event) => {
    if (event.target.name === "id") all.checked = boxes().every((box) => box.checked);
  });
  const head = form.querySelector("thead th");
  head.textContent = "";
  head.append(all);
}
