// Keys, jumps, the filter, and the omitted lines. The page can be read without this script.
"use strict";
(() => {
  const BATCH = 500; // calls that one frame shows or hides: all calls of a long session would take too long
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const summaryOf = (item) => item.querySelector(":scope > details > summary");
  // Not `hidden`: a browser would lay out thousands of lines again when they reappear.
  const setShown = (item, isShown) => item.classList.toggle("off", !isShown);
  const isShown = (item) => !item.classList.contains("off");

  // ---- texts: the page has a repeated text only once, and omitted lines only at their source
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
    if (document.activeElement === details.firstElementChild && details.matches(".calls > li > details, .file, .more"))
      details.scrollIntoView({ block: details.offsetHeight < innerHeight ? "nearest" : "start" });
  }, true);

  // ---- jumps
  function unfold(element) {
    for (let at = element; at; at = at.parentElement) {
      if (at.tagName === "DETAILS") at.open = true;
      setShown(at, true);
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
    if (link && link.hash === location.hash) arrive(); // the same address again causes no hashchange
  });

  // ---- the drawings: a line at the current call, and the window of calls that they show
  const readers = all(".reader");
  const zooms = new Map();
  function zoomable(reader, items) {
    const glance = reader.querySelector(".glance");
    const area = glance.querySelector(".plot svg");
    const tools = glance.querySelector(".tools");
    const readout = tools.querySelector(".readout");
    const axis = glance.querySelector(".x .scale");
    const rows = all(".file", glance).map((row) => [row, row.dataset.at.split(" ").map(Number)]);
    const more = glance.querySelector(".more");
    const least = Math.min(20, items.length);
    let from = 0, count = items.length, focused = null, pressed = null;
    const line = glance.appendChild(document.createElement("i"));
    line.className = "here";
    line.hidden = true;
    tools.hidden = false;

    const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
    const at = (clientX) => {
      const box = area.getBoundingClientRect();
      return clamp(from + (count * (clientX - box.left)) / box.width, 0, items.length);
    };
    const itemAt = (clientX) => items[Math.min(items.length - 1, Math.floor(at(clientX)))];
    function place(scale) {
      let last = -1;
      for (const label of scale.children) {
        const part = (Number(label.dataset.at) - from) / count;
        label.style.left = `${100 * part}%`;
        label.hidden = part < 0 || part > 0.97 || (part - last) * area.clientWidth < 45;
        if (!label.hidden) last = part;
      }
    }
    function show(newFrom, newCount) {
      count = clamp(newCount, least, items.length);
      from = clamp(newFrom, 0, items.length - count);
      for (const [row, places] of rows) setShown(row, places.some((place) => place >= from && place < from + count));
      const isPart = count < items.length; // then the list shows all files of the window
      if (more && more.firstElementChild.hidden !== isPart) more.open = more.firstElementChild.hidden = isPart;
      for (const svg of all(".plot svg, .file:not(.off) svg", glance))
        svg.setAttribute("viewBox", `${from} 0 ${count} ${svg.getAttribute("viewBox").split(" ")[3]}`);
      const wide = (count * 70) / area.clientWidth;
      let step = 10 ** Math.floor(Math.log10(wide));
      step = Math.max(1, [1, 2, 5, 10].map((times) => times * step).find((one) => one >= wide));
      axis.replaceChildren();
      for (let n = Math.floor(from / step) * step; n <= from + count; n += step) {
        const label = axis.appendChild(document.createElement("span"));
        label.textContent = Math.max(1, n).toLocaleString("en");
        label.dataset.at = Math.max(1, n) - 0.5;
      }
      all(".marks, .x .scale", glance).forEach(place);
      point(focused);
    }
    function point(item) {
      const part = item ? (items.indexOf(item) + 0.5 - from) / count : -1;
      line.hidden = part < 0 || part > 1;
      const box = area.getBoundingClientRect();
      line.style.left = `${box.left - glance.getBoundingClientRect().left + box.width * part}px`;
      if (!item) return;
      const word = (name) => item.querySelector(`.${name}`).textContent;
      readout.textContent = `#${word("n")}: ${word("why")}, then ${item.dataset.inView} tokens in view. ${word("what")}`;
    }
    const zoom = {
      in: () => show(focused ? items.indexOf(focused) - count / 4 : from + count / 4, count / 2),
      out: () => show(from - count / 2, count * 2),
      earlier: () => show(from - count / 2, count),
      later: () => show(from + count / 2, count),
      all: () => show(0, items.length),
    };
    for (const button of all("button", tools)) button.addEventListener("click", zoom[button.dataset.zoom]);
    reader.addEventListener("focusin", ({ target }) => {
      focused = target.closest(".calls > li");
      const number = focused ? items.indexOf(focused) : from;
      if (number < from || number >= from + count) show(number - count / 2, count);
      else point(focused);
    });
    glance.addEventListener("pointermove", ({ target, clientX }) => {
      if (target.closest("svg")) point(itemAt(clientX));
    });
    glance.addEventListener("pointerleave", () => point(focused));
    glance.addEventListener("pointerdown", ({ target, clientX, pointerType }) => {
      pressed = target.closest("svg") && pointerType === "mouse" ? clientX : null;
    });
    glance.addEventListener("click", (event) => {
      if (!event.target.closest("svg")) return;
      const [left, right] = [pressed ?? event.clientX, event.clientX].sort((a, b) => a - b);
      const isDrag = right - left > 8;
      const isMark = event.target.matches("path") || event.target.closest(".plot");
      if (isDrag) show(at(left), at(right) - at(left));
      else if (isMark) location.hash = itemAt(event.clientX).id;
      if (isDrag || isMark) event.preventDefault(); // without this, the row would unfold
      pressed = null;
    });
    addEventListener("resize", () => show(from, count));
    show(0, items.length);
    return zoom;
  }

  for (const reader of readers) {
    const items = all(".calls > li", reader);
    if (!items.length) continue;
    zooms.set(reader, zoomable(reader, items));

    // ---- the filter
    const bar = reader.querySelector(".filter");
    const find = bar.querySelector("input");
    const buttons = all("button", bar);
    const said = bar.querySelector("output");
    const names = items.map((item) => item.querySelector(".what").textContent.toLowerCase());
    const texts = []; // of everything that unfolds: many megabytes, so made when there is time, or at a search
    const textOf = (at) => (texts[at] ??= items[at].textContent.toLowerCase());
    function prepare(idle) {
      let at = texts.length;
      while (at < items.length && idle.timeRemaining() > 2) textOf(at++);
      if (at < items.length) requestIdleCallback(prepare);
    }
    globalThis.requestIdleCallback?.(prepare); // some browsers do not have it
    let kind = "", sifted = 0;
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
      const isAsked = (item, at) =>
        (!kind || item.classList.contains(kind)) && (!word || names[at].includes(word) || textOf(at).includes(word));
      const found = items.map(isAsked);
      const count = found.filter(Boolean).length;
      const mine = ++sifted;
      (function sweep(at) {
        if (mine !== sifted || at >= items.length) return;
        items.slice(at, at + BATCH).forEach((item, n) => setShown(item, found[at + n]));
        requestAnimationFrame(() => sweep(at + BATCH));
      })(0);
      said.textContent = kind || word ? `${count.toLocaleString("en")} of ${items.length.toLocaleString("en")}` : "";
    }
  }

  // ---- keys
  const calls = all(".calls > li");
  function go(step, fits) {
    const now = document.activeElement.closest?.(".calls > li");
    let at = now ? calls.indexOf(now) + step : calls.findIndex((item) => item.getBoundingClientRect().top >= 0);
    while (calls[at] && !(isShown(calls[at]) && fits(calls[at]))) at += step;
    if (!calls[at]) return;
    summaryOf(calls[at]).focus({ preventScroll: true });
    calls[at].scrollIntoView({ block: fits === any ? "nearest" : "center" });
    history.replaceState(null, "", `#${calls[at].id}`); // the address names the current call
  }
  const any = () => true;
  const isCut = (item) => item.classList.contains("left");

  const zoomKeys = { "+": "in", "-": "out", "0": "all" };
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
    else if (zoomKeys[key]) zooms.get(active.closest(".reader") || readers[0])?.[zoomKeys[key]]();
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
