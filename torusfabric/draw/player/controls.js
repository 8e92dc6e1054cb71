// Controls of the reader: play, step, scrub, choose colours, follow a node or a block.
let place = 0, playing = false, before = 0, hovered = -1, chosen = -1;

function draw() {
  const round = Math.min(Math.floor(place), last), share = place - round;
  const cycle = round ? cycles[round - 1] : 0, pointed = hovered < 0 ? chosen : hovered;
  paint(place, pointed);
  const meet = share > 0 ? meetings(round).length : 0;
  const now = share > 0 ? `${unit} ${round + 1} of ${last}, under way`
    + (meet ? `: partial sums meet at ${meet} place${meet === 1 ? "" : "s"}` : "")
    : round ? `after ${unit} ${round} of ${last}, cycle ${cycle}` : `before ${unit} 1 of ${last}`;
  // A live region: a screen reader would repeat a text that is set again.
  if ($("now").textContent !== now) $("now").textContent = now;
  $("place").value = place;
  $("place").setAttribute("aria-valuetext", now);
  $("play").textContent = playing ? "Pause" : "Play";
  $("tip").ariaLive = playing || hovered >= 0 ? "off" : "polite";
  tip(pointed);
}
function tip(node) {
  const tip = $("tip");
  if (node < 0) { tip.style.display = "none"; return; }
  const ids = [...held[node]].sort((a, b) => b[1] - a[1]);
  // A followed node keeps its tip, so the tip must be short.
  const most = hovered < 0 ? Number(data.whole.length > 0) : canvas.clientHeight < 360 ? 4 : 12;
  const lines = data.whole.length ? sumLines(node, ids).map(text => [text]) : ids.map(([id, when]) =>
    [`${name(id)} `, element("span", when ? `${unit} ${when}` : "its own")]);
  const rows = lines.slice(0, most);
  if (most && lines.length > most) rows.push([element("span", `and ${lines.length - most} more`)]);
  const each = [...new Set(data.whole)].join(" or ");
  const holds = each ? `${lines.length} sum${lines.length === 1 ? "" : "s"} here, of ${each} contributions each`
    : `holds ${ids.length} of the ${final[node]} ${data.things} it ends with`;
  tip.replaceChildren(...[[element("b", `node ${node} ${names[node]}`)], [holds], ...rows].map(parts => {
    const row = document.createElement("div");
    row.append(...parts);
    return row;
  }));
  const [x, y] = at(nodes[node]);
  tip.style.display = "block";
  const w = tip.offsetWidth, h = tip.offsetHeight;
  const above = Math.min(...nodes.map(p => at(p)[1])) - h > 24;  // there is room over the picture
  tip.style.left = `${Math.max(4, above ? (canvas.clientWidth - w) / 2
    : x + 24 + w < canvas.clientWidth ? x + 24 : x - 24 - w)}px`;
  tip.style.top = `${above ? 6 : Math.max(6, Math.min(y - h / 2, canvas.clientHeight - h - 6))}px`;
}

// Return the lines of a tip: sums that are being added at the node, then all sums at the node, the
// most complete first.
function sumLines(node, ids) {
  const under = place > Math.floor(place) ? meetings(Math.floor(place)) : [];
  const meets = under.filter(m => m.node === node).map(m =>
    `${sumName(m.sum)}: ${m.before} + ${m.after.length - m.before} meet, ${summed(m.sum, m.after)}`);
  return [...meets, ...sums(ids.map(([id]) => id)).sort((a, b) => b.ids.length - a.ids.length)
    .map(sum => `${sumName(sum)}: ${summed(sum)}`)];
}

function go(to) { place = Math.max(0, Math.min(last, to)); draw(); }
function pause() { playing = false; }
function frame(time) {
  if (!playing) return;
  // The time of the first frame may be before performance.now() in play().
  const passed = Math.max(0, Math.min(time - before, 100));
  place += passed / 1000 * 2 ** Number($("speed").value);
  before = time;
  if (place >= last) { place = last; pause(); }
  draw();
  if (playing) requestAnimationFrame(frame);
}
function play() {
  if (playing) { pause(); draw(); return; }
  if (place >= last) place = 0;
  playing = true; before = performance.now();
  requestAnimationFrame(frame);
}

// Choose the followed node and block: the list offers all blocks of the node, then each block.
const blocksOf = node => blocks.map((_, id) => id).filter(id => origin(id) === node);
function option(list, value, text) { list.add(new Option(text, value)); }
function choose(node, block = "") {
  chosen = node;
  const mine = node < 0 ? [] : blocksOf(node), list = $("block");
  $("follow").value = node < 0 ? "" : node;
  list.length = 0;
  option(list, "", "all its blocks");
  for (const id of mine) option(list, id, name(id));
  list.value = block;
  list.style.display = mine.length > 1 ? "" : "none";
  follow(node < 0 ? null : block === "" ? mine : [Number(block)]);
  draw();
}
// Follow the next node in a direction; at the border, the first one on the other side.
function followToward(dx, dy) {
  if (chosen < 0) { choose(0); return; }
  const [x, y] = nodes[chosen];
  const costs = nodes.map(([a, b], node) => {
    const along = (a - x) * dx + (b - y) * dy, aside = Math.abs((a - x) * dy - (b - y) * dx);
    if (node === chosen) return Infinity;
    return along > 1e-6 ? along + 2 * aside : 1e6 + along + 100 * aside;
  });
  const best = costs.indexOf(Math.min(...costs));
  if (best >= 0) choose(best);
}
function toggleHelp() { $("help").open = !$("help").open; }
function escape() {
  if (!$("help").open) { choose(-1); return; }
  if ($("help").contains(document.activeElement)) $("help").firstElementChild.focus();
  $("help").open = false;
}
function faster(by) {
  $("speed").value = Number($("speed").value) + by;
  describeSpeed();
}
function describeSpeed() {
  $("speed").setAttribute("aria-valuetext", `${Math.round(100 * 2 ** $("speed").value) / 100} ${unit}s a second`);
}
function cycle(list) { list.selectedIndex = (list.selectedIndex + 1) % list.length; list.onchange(); }

$("play").onclick = play;
$("first").onclick = () => { pause(); go(0); };
$("back").onclick = () => { pause(); go(Math.ceil(place) - 1); };
$("next").onclick = () => { pause(); go(Math.floor(place) + 1); };
$("place").max = last;
$("place").oninput = event => { pause(); go(Number(event.target.value)); };
$("speed").oninput = describeSpeed;
$("colour").onchange = () => { legend(); draw(); };
$("links").onchange = draw;
option($("follow"), "", "nothing");
names.forEach((text, node) => option($("follow"), node, `node ${node} ${text}`));
$("follow").onchange = event => choose(event.target.value === "" ? -1 : Number(event.target.value));
$("block").onchange = event => choose(chosen, event.target.value);
const KEYS = { " ": play, ArrowRight: () => $("next").onclick(), ArrowLeft: () => $("back").onclick(),
  Home: () => $("first").onclick(), End: () => { pause(); go(last); }, "+": () => faster(0.5),
  "-": () => faster(-0.5), c: () => cycle($("colour")), l: () => cycle($("links")),
  "[": () => { pause(); showStage(stage - 1); }, "]": () => { pause(); showStage(stage + 1); },
  "?": toggleHelp, Escape: escape };
const TOWARD = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
addEventListener("keydown", event => {
  const { tagName, type } = event.target;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (tagName === "SELECT" && event.key !== "Escape") return;
  if ((tagName === "BUTTON" || tagName === "SUMMARY") && event.key === " ") return;
  if (type === "range" && event.target.id === "speed") return;
  if (event.shiftKey && TOWARD[event.key]) { event.preventDefault(); followToward(...TOWARD[event.key]); return; }
  if (KEYS[event.key]) { event.preventDefault(); KEYS[event.key](); }
});
function nodeAt(event) {
  const within = nodes.map(p => { const [x, y] = at(p); return Math.hypot(x - event.offsetX, y - event.offsetY); });
  const nearest = within.indexOf(Math.min(...within));
  return within[nearest] < Math.max(10, 0.35 * scale) ? nearest : -1;
}
canvas.onpointermove = event => {
  if (event.pointerType === "touch") return;
  const found = nodeAt(event);
  if (found !== hovered) { hovered = found; draw(); }
};
canvas.onpointerleave = () => { hovered = -1; draw(); };
canvas.onclick = event => { const found = nodeAt(event); choose(found === chosen ? -1 : found); };
addEventListener("resize", () => { fit(); draw(); });
// A page that embeds this one may choose light or dark; else it is as the system of the reader.
const system = matchMedia("(prefers-color-scheme: dark)");
let theme = "auto";
function setTheme(to) {
  theme = ["light", "dark"].includes(to) ? to : "auto";
  document.documentElement.dataset.theme = theme === "auto" ? system.matches ? "dark" : "light" : theme;
  draw();
}
addEventListener("message", event => { if (event.data && event.data.theme) setTheme(event.data.theme); });
system.addEventListener("change", () => setTheme(theme));
// The fragment of the address sets the initial state: round, colour, followed node, links, stage.
// Examples: #2.5,origin,7,use and #,,,,4.
const [wanted, colour, node, links, first] = location.hash.slice(1).split(",");
function select(list, value) { if ([...list.options].some(each => each.value === value)) list.value = value; }
select($("colour"), colour); select($("links"), links); select($("follow"), node);
describeSpeed(); legend(); fit(); setTheme("auto"); go(Number(wanted) || 0); choose($("follow").value === "" ? -1 : Number($("follow").value));
if (first || !wanted) showStage(Number(first) || 0);
