// Keys, jumps, the filter, and the lines that were left out. Without it the page can still be read.
"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const summaryOf = (item) => item.querySelector(":scope > details > summary");
  const isShown = (item) => !item.hidden;

  // ---- texts: a text that stands twice is here once; lines that were left out stand at their source
  function fillSame(pre) {
    const code = pre.querySelector("code");
    const home = document.getElementById(pre.dataset.same);
    for (const node of home.querySelector("pre code").childNodes)
      if (node.className !== "band") code.append(node.cloneNode(true));
    pre.removeAttribute("data-same");
  }

  function linesAt(name, at, count) {
    const home = document.getElementById(name);
    all("pre[data-same]", home).forEach(fillSame);
    const parts = all(":scope > pre", home).filter((pre) => Number(pre.dataset.at) <= at);
    const pre = parts[parts.length - 1];
    const first = at - Number(pre.dataset.at);
    return pre.textContent.split("\n").slice(first, first + count);
  }

  function fillGap(gap) {
    const places = gap.dataset.from.split(" ").map((place) => place.split(":"));
    const lines = places.flatMap(([name, at, count]) => linesAt(name, Number(at), Number(count)));
    const pre = document.createElement("pre");
    const code = pre.appendChild(document.createElement("code"));
    pre.tabIndex = 0;
    code.textContent = lines.join("\n");
    gap.querySelector("p").replaceWith(pre);
    gap.classList.remove("fill");
  }

  document.addEventListener("toggle", ({ target: details }) => {
    if (!details.open) return;
    if (details.classList.contains("fill")) fillGap(details);
    all(":scope > .body pre[data-same]", details).forEach(fillSame);
    if (document.activeElement === details.firstElementChild && details.matches(".calls > li > details"))
      details.scrollIntoView({ block: details.offsetHeight < innerHeight ? "nearest" : "start" });
  }, true);

  // ---- jumps
  function unfold(element) {
    for (let at = element; at; at = at.parentElement) {
      if (at.tagName === "DETAILS") at.open = true;
      if (at.tagName === "LI") at.hidden = false;
    }
    all("pre[data-same]", element.closest("pre") || element).forEach(fillSame);
  }

  function arrive() {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (!target) return;
    if (target.parentElement.className === "calls") target.querySelector("details").open = true;
    unfold(target);
    if (target.className === "band") {
      target.tabIndex = -1;
      target.focus({ preventScroll: true });
      target.scrollIntoView({ block: target.offsetHeight < innerHeight / 2 ? "center" : "start" });
    } else if (target.parentElement.className === "calls") {
      summaryOf(target).focus({ preventScroll: true });
      target.scrollIntoView({ block: "start" });
    }
  }
  addEventListener("hashchange", arrive);
  document.addEventListener("click", ({ target }) => {
    const link = target.closest && target.closest('a[href^="#"]');
    if (link && link.hash === location.hash) arrive(); // the same place once more: no hashchange
  });

  // ---- where the focused call is in the drawings above
  const readers = all(".reader");
  for (const reader of readers) {
    const items = all(".calls > li", reader);
    const glance = reader.querySelector(".glance");
    const svg = reader.querySelector(".all svg");
    if (!items.length) continue;
    const line = glance.appendChild(document.createElement("i"));
    line.className = "here";
    line.hidden = true;
    reader.addEventListener("focusin", ({ target }) => {
      const item = target.closest(".calls > li");
      if (!item) return;
      const box = svg.getBoundingClientRect();
      const left = box.left - glance.getBoundingClientRect().left;
      line.style.left = `${left + (box.width * (items.indexOf(item) + 0.5)) / items.length}px`;
      line.hidden = false;
    });
    svg.addEventListener("click", (event) => {
      const box = svg.getBoundingClientRect();
      const at = Math.floor((items.length * (event.clientX - box.left)) / box.width);
      const item = items[Math.min(items.length - 1, Math.max(0, at))];
      location.hash = item.id;
    });

    // ---- the filter
    const bar = reader.querySelector(".filter");
    const find = bar.querySelector("input");
    const buttons = all("button", bar);
    const said = bar.querySelector("output");
    const names = items.map((item) => item.querySelector(".what").textContent.toLowerCase());
    let texts; // of all that unfolds: many megabytes, so made at the first search
    let kind = "";
    bar.hidden = false;
    for (const button of buttons) {
      const name = button.dataset.show;
      const count = name ? items.filter((item) => item.classList.contains(name)).length : items.length;
      button.append(` ${count.toLocaleString("en")}`);
      button.disabled = false;
      if (!count) button.hidden = true;
      button.addEventListener("click", () => {
        kind = name;
        for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
        sift();
      });
    }
    find.addEventListener("input", sift);
    function sift() {
      const word = find.value.trim().toLowerCase();
      if (word) texts ||= items.map((item) => item.textContent.toLowerCase());
      let count = 0;
      items.forEach((item, at) => {
        item.hidden = !((!kind || item.classList.contains(kind)) && (!word || names[at].includes(word) || texts[at].includes(word)));
        count += !item.hidden;
      });
      said.textContent = kind || word ? `${count.toLocaleString("en")} of ${items.length.toLocaleString("en")}` : "";
    }
  }

  // ---- keys
  function go(step, fits) {
    const items = all(".calls > li");
    const now = document.activeElement.closest && document.activeElement.closest(".calls > li");
    let at = now ? items.indexOf(now) + step : items.findIndex((item) => item.getBoundingClientRect().top >= 0);
    while (items[at] && !(isShown(items[at]) && fits(items[at]))) at += step;
    if (!items[at]) return;
    summaryOf(items[at]).focus({ preventScroll: true });
    items[at].scrollIntoView({ block: fits === any ? "nearest" : "center" });
    history.replaceState(null, "", `#${items[at].id}`); // the address of what is looked at
  }
  const any = () => true;
  const isCut = (item) => item.classList.contains("left");

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const active = document.activeElement;
    const onLine = active.tagName === "SUMMARY" && active.closest(".calls");
    if (active.tagName === "INPUT") {
      if (event.key === "Escape") active.blur();
      return;
    }
    const key = onLine && event.key === "ArrowDown" ? "j" : onLine && event.key === "ArrowUp" ? "k" : event.key;
    if (key === "j") go(1, any);
    else if (key === "k") go(-1, any);
    else if (key === "n") go(1, isCut);
    else if (key === "p") go(-1, isCut);
    else if (key === "/") document.querySelector(".filter input").focus();
    else if (key === "Escape") {
      const item = active.closest && active.closest(".calls > li");
      if (!item) return;
      item.querySelector("details").open = false;
      summaryOf(item).focus();
    } else return;
    event.preventDefault();
  });

  arrive();
})();
