// The followed flit, cycle by cycle: a list of its hardware stages with their source code.
const stages = data.stages;
let stage = -1;

const placeOf = ([, , , , , file, number]) => `${file}:${number}`;
const roundsBefore = cycle => cycles.filter(end => end <= cycle).length;
// Return the source code of a stage with line numbers.
function listing(of) {
  const first = of[6], lines = data.code[placeOf(of)].trimEnd().split("\n");
  const wide = String(first + lines.length).length;
  return element("pre", lines.map((text, k) => `${String(first + k).padStart(wide)}  ${text}`).join("\n"));
}
function entry(of, k) {
  const item = document.createElement("li"), button = document.createElement("button");
  button.append(element("b", of[0]), element("span", of[1]), element("small", `${of[4]}, ${placeOf(of)}`));
  button.onclick = () => { pause(); showStage(k); };
  item.append(button);
  return item;
}
// Select a stage, and show the network in the cycle of this stage.
function showStage(k) {
  if (!stages.length) return;
  stage = Math.max(0, Math.min(stages.length - 1, k));
  [...$("stages").children].forEach((item, number) => {
    const button = item.firstChild;
    while (button.nextSibling) button.nextSibling.remove();
    button.removeAttribute("aria-current");
    if (number !== stage) return;
    button.setAttribute("aria-current", "step");
    item.append(listing(stages[stage]));
    // Scroll only the list: scrollIntoView would also scroll a page that embeds this one.
    const list = $("word"), above = item.offsetTop - $("from").parentElement.offsetHeight;
    const below = item.offsetTop + item.offsetHeight - list.clientHeight;
    list.scrollTop = Math.min(above, Math.max(list.scrollTop, below));
  });
  go(roundsBefore(stages[stage][0]));
}
// paintWay paints the links that the flit has used, below the nodes; paintStage marks its node or
// link, above the nodes. Both paint only while the picture shows the cycle of the stage.
const isShown = () => stage >= 0 && place === roundsBefore(stages[stage][0]);
function paintWay() {
  if (!isShown()) return;
  pen.lineWidth = Math.max(3, 0.1 * scale);
  stages.slice(0, stage + 1).forEach(([, , node, port], k) => {
    pen.strokeStyle = themed(k === stage ? "--trail" : "--accent");
    if (port >= 0) hop(node, port, line, ASIDE);
  });
}
function paintStage() {
  if (!isShown()) return;
  const [, , node, port] = stages[stage];
  if (node < 0) return;
  pen.strokeStyle = pen.fillStyle = themed("--trail"); pen.lineWidth = Math.max(3, 0.07 * scale);
  pen.beginPath();
  if (port < 0) pen.arc(...at(nodes[node]), Math.max(5, Math.min(0.33 * scale, 28)), 0, 7);
  else pen.arc(...token(node, [port], 0.6), Math.max(4, 0.11 * scale), 0, 7);
  if (port < 0) pen.stroke(); else pen.fill();
}
if (stages.length) {
  document.body.classList.add("word");
  $("word").hidden = false;
  $("from").textContent = `a flit from node ${stages[0][2]} to node ${stages[stages.length - 1][2]}, by cycles`;
  $("stages").append(...stages.map(entry));
  $("earlier").onclick = () => { pause(); showStage(stage - 1); };
  $("later").onclick = () => { pause(); showStage(stage + 1); };
}
