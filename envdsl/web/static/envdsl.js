// What HTML alone cannot do. Every page works without it.
"use strict";

// After htmx has put a new main part in place: the news is read aloud, and the keyboard goes to that part where the
// button that was pressed is gone with the old one. A page that looked again by itself stays where it is.
document.addEventListener("htmx:afterSettle", (event) => {
  const region = event.detail.elt;
  const news = region.querySelector("[data-announce]");
  if (news) document.getElementById("live").textContent = news.textContent.trim();
  if (region.id !== "main") return;
  const byItself = event.detail.requestConfig.elt.id === "standing";
  if (!byItself) window.scrollTo(0, 0);
  if (document.activeElement === document.body) region.focus({ preventScroll: true });
});

// The menu of a phone lies over the page: choosing from it closes it.
document.addEventListener("click", (event) => {
  const side = document.getElementById("side");
  if (side && side.matches(":popover-open") && event.target.closest("nav a")) side.hidePopover();
});
