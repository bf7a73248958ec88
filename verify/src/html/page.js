"use strict";
// Which step one looks at. The page is whole without this script.
(() => {
  const root = document.documentElement;
  const controls = document.querySelector(".controls");
  const wrong = document.querySelector(".wrong").textContent;
  const rows = [...document.querySelectorAll("[data-at]")];
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const still = matchMedia("(prefers-reduced-motion: reduce)");

  const hash = () => new URLSearchParams(location.hash.slice(1));
  const keep = (name, value) => {
    const kept = hash();
    kept.set(name, value);
    history.replaceState(null, "", "#" + kept);
  };
  const theme = (name) => {
    if (name === "dark" || name === "light") root.dataset.theme = name;
  };
  theme(hash().get("theme"));
  if (!controls) return;

  const stage = document.querySelector(".stage");
  const range = controls.querySelector("input");
  const now = controls.querySelector(".now");
  const button = (name) => controls.querySelector(`[data-do=${name}]`);
  const end = Number(rows.at(-1).dataset.at);
  let at = end;
  let timer = 0;

  const describe = () => {
    if (at === end) return `End. ${wrong}`;
    return `${at} of ${end - 1}. ${rows[at - 1].querySelector(".told").textContent}`;
  };

  // Brings a row into view: within the stage, and the stage with it where the page itself is scrolled.
  const reveal = (row, smooth) => {
    const names = stage.querySelector(".lanes").offsetHeight;
    const frame = stage.getBoundingClientRect();
    const box = row.getBoundingClientRect();
    const above = box.top - frame.top - names - 12;
    const below = box.bottom - frame.bottom + 24;
    const by = above < 0 || box.height > frame.height - names ? above : Math.max(0, below);
    const mark = [...row.querySelectorAll(".mark")].find((one) => one.getClientRects().length);
    let across = 0;
    if (mark) {
      const x = mark.getBoundingClientRect().left - frame.left;
      if (x < 60 || x > frame.width - 60) across = x - frame.width / 2;
    }
    const near = smooth && !still.matches && Math.abs(by) < frame.height;
    stage.scrollBy({ top: by, left: across, behavior: near ? "smooth" : "instant" });
    const hidden = box.bottom - by > controls.getBoundingClientRect().top || box.top - by < names;
    if (hidden) stage.parentElement.scrollIntoView({ block: "nearest" });
  };

  // A short run fills its stage; none is made smaller than it is drawn.
  const fit = () => {
    const pictures = [...stage.querySelectorAll(".wide")];
    const size = (svg) => svg.viewBox.baseVal;
    const tall = pictures.reduce((sum, svg) => sum + size(svg).height, 0);
    const room = [(stage.clientWidth - 24) / size(pictures[0]).width, (stage.clientHeight - 32) / tall];
    const scale = Math.max(1, Math.min(1.7, ...room));
    for (const svg of pictures) {
      svg.style.width = `${Math.round(size(svg).width * scale)}px`;
      // Whole pixels, so that lifelines join from row to row.
      svg.style.height = `${Math.round(size(svg).height * scale)}px`;
    }
  };

  const show = (step, move) => {
    at = Math.min(end, Math.max(1, step));
    for (const row of rows) {
      const place = Number(row.dataset.at);
      row.classList.toggle("later", place > at);
      row.classList.toggle("current", place === at && at !== end);
      if (place === at) row.setAttribute("aria-current", "step");
      else row.removeAttribute("aria-current");
    }
    range.value = at;
    range.setAttribute("aria-valuetext", at === end ? "end" : `step ${at} of ${end - 1}`);
    now.textContent = describe();
    button("first").disabled = button("back").disabled = at === 1;
    button("forth").disabled = button("last").disabled = at === end;
    document.body.dataset.step = at;
    if (move) {
      reveal(rows[at - 1], true);
      keep("step", at);
    }
  };

  const pause = () => {
    clearInterval(timer);
    timer = 0;
    document.body.classList.remove("playing");
    button("play").setAttribute("aria-label", "Play");
  };
  const play = () => {
    show(at === end ? 1 : at + 1, true);
    document.body.classList.add("playing");
    button("play").setAttribute("aria-label", "Pause");
    timer = setInterval(() => {
      show(at + 1, true);
      if (at === end) pause();
    }, 1100);
    if (at === end) pause();
  };

  const go = (step) => {
    pause();
    show(step, true);
  };
  const actions = {
    first: () => go(1),
    back: () => go(at - 1),
    forth: () => go(at + 1),
    last: () => go(end),
    play: () => (timer ? pause() : play()),
    text: () => {
      const on = document.body.classList.toggle("as-text");
      button("text").setAttribute("aria-pressed", on);
    },
    theme: () => {
      const now = root.dataset.theme || (dark.matches ? "dark" : "light");
      theme(now === "dark" ? "light" : "dark");
      keep("theme", root.dataset.theme);
    },
  };

  controls.addEventListener("click", (event) => {
    const pressed = event.target.closest("[data-do]");
    if (pressed) actions[pressed.dataset.do]();
  });
  range.addEventListener("input", () => go(Number(range.value)));
  for (const row of rows) row.addEventListener("click", () => {
    if (String(getSelection()) === "") go(Number(row.dataset.at));
  });
  const keys = {
    ArrowLeft: "back", ArrowUp: "back", ArrowRight: "forth", ArrowDown: "forth",
    Home: "first", End: "last", " ": "play",
  };
  addEventListener("keydown", (event) => {
    const name = keys[event.key];
    if (!name || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
    const own = event.target.closest("button, input");
    if (own && (event.key === " " || own === range)) return;
    event.preventDefault();
    actions[name]();
  });
  addEventListener("hashchange", () => {
    theme(hash().get("theme"));
    const step = Number(hash().get("step"));
    if (step) go(step);
  });

  addEventListener("resize", fit);

  range.max = end;
  controls.hidden = false;
  fit();
  const asked = Number(hash().get("step"));
  show(asked || end, false);
  if (asked) reveal(rows[at - 1], false);
})();
