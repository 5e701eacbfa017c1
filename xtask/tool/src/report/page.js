// A plot that has the focus is read by the arrows, Home and End, or by the mouse: a line shows where, the text below what is there.
for (const plot of document.querySelectorAll(".plot")) {
  const places = plot.dataset.places.split(" ").map(Number);
  const readings = plot.dataset.readings.split("|");
  const cursor = plot.querySelector(".cursor");
  const output = plot.closest("section").querySelectorAll("output");
  // The next one below.
  const said = [...output].find((one) => plot.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING);
  const name = plot.closest("figure").querySelector("figcaption");
  let at = -1;
  const choose = (next) => {
    at = Math.max(0, Math.min(readings.length - 1, next));
    cursor.setAttribute("x1", places[at]);
    cursor.setAttribute("x2", places[at]);
    cursor.setAttribute("visibility", "visible");
    said.textContent = (name ? name.textContent + ", " : "") + readings[at];
  };
  plot.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: readings.length - 1 }[event.key];
    if (step !== undefined) {
      choose(step);
      event.preventDefault();
    }
  });
  plot.addEventListener("pointermove", (event) => {
    const box = plot.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * 720;
    choose(places.reduce((best, place, index) => (Math.abs(place - x) < Math.abs(places[best] - x) ? index : best), 0));
  });
  plot.addEventListener("blur", () => cursor.setAttribute("visibility", "hidden"));
}
