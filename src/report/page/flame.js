// Zoom of a flame graph: the frame that was clicked takes the full width, what holds it stays above it, pale.
(function () {
  "use strict";
  const MARGIN = 10, WIDTH = 1180, LETTER = 7;
  const told = document.getElementById("told");
  const frames = Array.from(document.querySelectorAll(".f"), (g) => ({
    g,
    x: Number(g.dataset.x),
    w: Number(g.dataset.w),
    level: Number(g.dataset.l),
    rect: g.querySelector("rect"),
    text: g.querySelector("text"),
    about: g.querySelector("title").textContent.replace(/\n/g, " \u00b7 "),
  }));

  function fit(name, brief, width) {
    const room = Math.floor((width - 6) / LETTER);
    const text = name.length <= room ? name : brief;
    if (text.length <= room) return text;
    return room < 3 ? "" : text.slice(0, room - 2) + "..";
  }

  function show(top) {
    const end = top.x + top.w, slack = 1e-9;
    for (const f of frames) {
      const around = f.level < top.level && f.x <= top.x + slack && f.x + f.w >= end - slack;
      const within = f.level >= top.level && f.x >= top.x - slack && f.x + f.w <= end + slack;
      f.g.style.display = around || within ? "" : "none";
      f.g.classList.toggle("o", around);
      const x = around ? 0 : (f.x - top.x) / top.w, w = around ? 1 : f.w / top.w;
      f.rect.setAttribute("x", MARGIN + x * WIDTH);
      f.rect.setAttribute("width", Math.max(0, w * WIDTH));
      f.text.setAttribute("x", MARGIN + x * WIDTH + 3);
      f.text.textContent = fit(f.text.dataset.t, f.text.dataset.s, w * WIDTH);
    }
  }

  for (const f of frames) {
    f.g.addEventListener("click", () => show(f));
    f.g.addEventListener("mouseenter", () => { told.textContent = f.about; });
    f.g.addEventListener("mouseleave", () => { told.textContent = ""; });
  }
  if (frames.length) {
    document.getElementById("ground").addEventListener("click", () => show(frames[0]));
    document.addEventListener("keydown", (event) => { if (event.key === "Escape") show(frames[0]); });
  }
})();
