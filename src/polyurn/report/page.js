// Draws the page's charts, and hides the populations that the reader has switched off.
"use strict";

(async () => {
  const specs = JSON.parse(document.getElementById("charts").textContent);
  const options = { mode: "vega-lite", renderer: "svg", actions: false, tooltip: { theme: "page" } };
  const drawn = [...document.querySelectorAll("[data-chart]")].map(async (place) => {
    const spec = specs[place.dataset.chart];
    const { view } = await vegaEmbed(place, spec, options);
    place.dataset.drawn = "yes";
    return view;
  });
  const views = await Promise.all(drawn);

  const switches = [...document.querySelectorAll(".switches input")];
  const show = () => {
    const shown = switches.filter((box) => box.checked).map((box) => box.value);
    for (const panel of document.querySelectorAll("[data-population]")) {
      panel.hidden = !shown.includes(panel.dataset.population);
    }
    for (const view of views) view.signal("shown", shown).runAsync();
  };
  for (const box of switches) box.addEventListener("change", show);
  if (switches.length) show(); // a browser that comes back to a page keeps its boxes

  // Paper has its own width: charts are drawn anew for it, and again for the screen.
  const fit = () => window.dispatchEvent(new Event("resize"));
  window.addEventListener("beforeprint", fit);
  window.addEventListener("afterprint", fit);
})();
