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

// What is not markup any more would lose its focus, its place and its open details.
function swap(region, html) {
  const focused = region.contains(document.activeElement) ? document.activeElement : null;
  const key = keyOf(focused);
  const label = focused && focused.getAttribute("aria-label");
  const open = [...region.querySelectorAll("details[open]")].map(keyOf);
  const scrolled = [...region.querySelectorAll(".scroll, pre")].map((each) => [each.scrollLeft, each.scrollTop]);
  region.innerHTML = html;
  for (const each of region.querySelectorAll("details")) {
    if (open.includes(keyOf(each))) each.open = true;
  }
  region.querySelectorAll(".scroll, pre").forEach((each, index) => {
    if (scrolled[index]) [each.scrollLeft, each.scrollTop] = scrolled[index];
  });
  if (!focused) return;
  const again = [...region.querySelectorAll("a, button, summary, [tabindex]")].find((each) =>
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

if (place && light) {
  document.addEventListener("visibilitychange", look);
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", (event) => { if (event.persisted) look(); });
  look();
}

const form = document.querySelector("form[data-choose]");
if (form) {
  const boxes = [...form.querySelectorAll("input[name=id]")];
  const all = document.createElement("input");
  all.type = "checkbox";
  all.setAttribute("aria-label", "all jobs of this page");
  all.addEventListener("change", () => { for (const box of boxes) box.checked = all.checked; });
  form.addEventListener("change", (event) => {
    if (event.target.name === "id") all.checked = boxes.every((box) => box.checked);
  });
  const head = form.querySelector("thead th");
  head.textContent = "";
  head.append(all);
}
