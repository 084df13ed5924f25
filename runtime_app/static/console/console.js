// Comfort only: every page does its work without this file.
"use strict";
(() => {
  const body = document.body;
  const typing = (node) => node instanceof Element && node.closest("input, textarea, select, [contenteditable]");

  // A form is sent once; the server refuses the second copy anyway.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (event.defaultPrevented || form.method !== "post" || "download" in form.dataset) return; // a download stays here
    if (form.dataset.sent) return event.preventDefault();
    form.dataset.sent = "yes";
    for (const button of form.querySelectorAll("button")) button.setAttribute("aria-disabled", "true");
  });
  window.addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) {
      delete form.dataset.sent;
      for (const button of form.querySelectorAll("button")) button.removeAttribute("aria-disabled");
    }
  });

  // A copy button beside every id.
  const icons = body.dataset.icons;
  const addCopyButtons = (root) => {
    for (const holder of root.querySelectorAll(".ident[data-copy]:not(:has(button))")) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "ident-copy";
      button.title = button.ariaLabel = `${body.dataset.copy} ${holder.textContent}`;
      button.innerHTML = `<svg aria-hidden="true"><use href="${icons}#copy"></use></svg>`;
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(holder.dataset.copy);
        button.querySelector("use").setAttribute("href", `${icons}#check`);
        say(body.dataset.copied);
        setTimeout(() => button.querySelector("use").setAttribute("href", `${icons}#copy`), 1500);
      });
      holder.append(button);
    }
  };
  const say = (text) => { document.getElementById("said").textContent = text; };
  addCopyButtons(document);

  // j and k walk the rows, / goes to the search, ? shows the keys.
  const keys = document.getElementById("keys");
  for (const opener of document.querySelectorAll("[data-shows-keys]")) {
    opener.hidden = false;
    opener.addEventListener("click", () => keys.showModal());
  }
  const walk = (step) => {
    const rows = [...document.querySelectorAll("a.row-link")];
    const next = rows[rows.indexOf(document.activeElement) + step] ?? (step > 0 ? rows[0] : rows.at(-1));
    next?.focus();
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || document.querySelector("dialog[open]")) return;
    const search = document.querySelector("input[type=search]");
    const row = document.activeElement?.closest("tr");
    const press = (key) => (row?.querySelector(`[data-key="${key}"]`) ?? document.querySelector(`main :not(tr) > form > [data-key="${key}"], main a[data-key="${key}"]`))?.click();
    const decide = () => (document.querySelector("#decide textarea") ?? document.querySelector("#decide a"))?.focus();
    const tick = () => row?.querySelector("input[type=checkbox]")?.click();
    const acts = { c: () => press("c"), s: () => press("s"), n: () => press("n"), u: () => press("u"), d: decide, x: tick, j: () => walk(1), k: () => walk(-1), "/": () => search?.focus(), "?": () => keys?.showModal() };
    if (acts[event.key]) { event.preventDefault(); acts[event.key](); }
  });

  // Polls ask only for what changed, rest while nobody looks, and never swap what the reader has a hand on.
  body.addEventListener("htmx:configRequest", (event) => {
    const tag = event.detail.elt.dataset.etag;
    if (tag) event.detail.headers["If-None-Match"] = tag;
  });
  body.addEventListener("htmx:beforeRequest", (event) => {
    const region = event.detail.elt;
    if (!region.matches("[data-poll]")) return;
    const held = typing(document.activeElement) && region.contains(document.activeElement);
    const marked = !getSelection().isCollapsed && region.contains(getSelection().anchorNode);
    const opened = region.querySelector("details[open], input:checked");
    if (document.hidden || held || marked || opened) event.preventDefault();
  });
  body.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr, elt } = event.detail;
    if (!elt.matches("[data-poll]")) return;
    if (xhr.status !== 200) { event.detail.shouldSwap = false; event.detail.isError = false; return; }
    const tag = xhr.getResponseHeader("ETag");
    if (!tag) { event.detail.shouldSwap = false; location.reload(); return; } // not the region: signed out meanwhile
    elt.dataset.etag = tag;
    elt.dataset.focus = document.activeElement?.getAttribute("href") ?? "";
  });
  // A task's page hears of every event as it happens; the stream rests while nobody looks and resumes behind it.
  const streamed = document.querySelector("[data-stream]");
  let stream, renewing;
  const listen = () => {
    stream?.close();
    if (document.hidden) return;
    stream = new EventSource(streamed.dataset.stream);
    stream.onmessage = () => {
      clearTimeout(renewing);
      renewing = setTimeout(() => htmx.trigger(streamed, "renew"), 150);
    };
    stream.addEventListener("end", () => stream.close());
  };
  if (streamed && window.EventSource) {
    listen();
    document.addEventListener("visibilitychange", listen);
    document.addEventListener("toggle", (event) => {
      if (!event.target.open && streamed.contains(event.target)) htmx.trigger(streamed, "renew");
    }, true);
  }

  // A page that its task has left behind is loaded anew a moment later, unless the reader has begun something on it.
  const begun = (field) => field.type !== "hidden" && field.value !== field.defaultValue;
  const untouched = () => !document.hidden && !document.querySelector("main details[open]") && getSelection().isCollapsed
    && !typing(document.activeElement) && ![...document.querySelectorAll("main input, main textarea")].some(begun);
  let leaving;
  const leave = () => {
    clearTimeout(leaving);
    leaving = setTimeout(() => { if (untouched()) location.reload(); }, 1500);
  };

  body.addEventListener("htmx:afterSwap", (event) => {
    const region = event.detail.elt;
    if (region.querySelector("[data-moved-on]")) leave();
    addCopyButtons(region);
    const href = region.dataset.focus;
    if (href) region.querySelector(`a[href="${CSS.escape(href)}"]`)?.focus({ preventScroll: true });
  });
})();
