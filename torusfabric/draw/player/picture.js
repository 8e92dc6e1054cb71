// The picture of a moment: the network, moving transfers, and the contents of the nodes.
const canvas = $("canvas"), pen = canvas.getContext("2d"), box = data.box;
const ASIDE = 0.085, HEAT = ["#f3d9a4", "#e8862e", "#b3202a"];
let scale = 1, left = 0, top_ = 0;

const themed = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const hue = node => `hsl(${(node * 360 / count + 8) % 360} 68% ${46 + 12 * (node % 3 - 1)}%)`;
function ramp(colours, share) {
  const way = Math.min(Math.max(share, 0), 1) * (colours.length - 1);
  const k = Math.min(Math.floor(way), colours.length - 2);
  const part = (colour, i) => parseInt(colour.slice(i, i + 2), 16);
  return `rgb(${[1, 3, 5].map(i => Math.round(
    part(colours[k], i) + (part(colours[k + 1], i) - part(colours[k], i)) * (way - k))).join(",")})`;
}
const progress = share => ramp(["#f7f9fc", "#7eb6de", "#114e8c"], share);
const age = share => ramp(["#d9480f", "#f0b35a", "#e6e9ee"], share);
// Return the colour of a node, and true if text on it must be bright.
function fill(node) {
  const by = $("colour").value;
  if (by === "origin") return newest[node] < 0 ? ["#ffffff", false] : [hue(origin(newest[node])), true];
  if (by === "age") {
    const share = came[node] < 0 ? 1 : (shown - came[node]) / Math.max(4, last / 3);
    return [age(share), share < 0.2];
  }
  const share = final[node] ? held[node].size / final[node] : 0;
  return [progress(share), share > 0.6];
}

function fit() {
  const ratio = window.devicePixelRatio || 1, { clientWidth: w, clientHeight: h } = canvas;
  canvas.width = w * ratio; canvas.height = h * ratio;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  scale = Math.min(w / (box[1][0] - box[0][0]), h / (box[1][1] - box[0][1]), 110);
  left = (w - scale * (box[0][0] + box[1][0])) / 2;
  top_ = (h - scale * (box[0][1] + box[1][1])) / 2;
}
const at = ([x, y]) => [left + scale * x, top_ + scale * y];
// Return a point to the right of a link, so that transfers in both directions are visible.
function beside(node, port, far, aside) {
  const [x, y] = steps[node % steps.length][port], size = Math.hypot(x, y) || 1;
  return at([nodes[node][0] + x * far - y / size * aside, nodes[node][1] + y * far + x / size * aside]);
}
function line(a, b) { pen.beginPath(); pen.moveTo(...a); pen.lineTo(...b); pen.stroke(); }
function hop(node, port, draw, aside = 0) {
  const there = near[node][port], back = opposite[port];
  if (joined[node][port]) draw(beside(node, port, 0, aside), beside(node, port, 1, aside));
  else {
    draw(beside(node, port, 0, aside), beside(node, port, 0.46, aside));
    draw(beside(there, back, 0.46, -aside), beside(there, back, 0, -aside));
  }
}
function way([node, ports]) {
  let here = node;
  for (const port of ports) { hop(here, port, line, ASIDE); here = near[here][port]; }
}
function token(node, ports, share) {
  const along = share * ports.length, k = Math.min(Math.floor(along), ports.length - 1);
  let here = node;
  for (let j = 0; j < k; j++) here = near[here][ports[j]];
  const port = ports[k], far = along - k, there = near[here][port];
  if (joined[here][port]) return beside(here, port, far, ASIDE);
  return far < 0.5 ? beside(here, port, far * 0.92, ASIDE)
    : beside(there, opposite[port], (1 - far) * 0.92, -ASIDE);
}

function paintGround() {
  const dark = document.documentElement.dataset.theme === "dark";
  for (const [corners, colour] of data.regions) {
    pen.beginPath();
    corners.forEach((p, k) => k ? pen.lineTo(...at(p)) : pen.moveTo(...at(p)));
    pen.closePath();
    pen.fillStyle = colour; pen.strokeStyle = themed("--line"); pen.lineWidth = 1;
    pen.globalAlpha = dark ? 0.12 : 1;
    if (colour !== "none") pen.fill();
    pen.globalAlpha = 1;
    pen.stroke();
  }
  pen.fillStyle = themed("--soft"); pen.textAlign = "center"; pen.textBaseline = "alphabetic";
  pen.font = `${Math.max(10, Math.min(0.3 * scale, 15))}px system-ui, sans-serif`;
  for (const [x, y, text] of data.captions) pen.fillText(text, ...at([x, y]));
}
function paintLinks() {
  pen.lineCap = "round"; pen.strokeStyle = themed("--net"); pen.lineWidth = Math.max(1, 0.04 * scale);
  const use = $("links").value === "use";
  for (let node = 0; node < count; node++)
    for (let port = 0; port < degree; port++) {
      if (near[node][port] === node && count > 1) continue;  // no link
      const carried = used[node * degree + port];
      if (use && carried) {
        pen.strokeStyle = ramp(HEAT, carried / mostUsed);
        pen.lineWidth = Math.max(1.5, 0.09 * scale);
        hop(node, port, line, 0.6 * ASIDE);
        pen.strokeStyle = themed("--net"); pen.lineWidth = Math.max(1, 0.04 * scale);
      } else hop(node, port, line);
    }
}
function paintTrail(round) {
  if (!followed) return;
  pen.strokeStyle = themed("--trail"); pen.lineWidth = Math.max(2, 0.08 * scale);
  followed.moves.slice(0, round).flat().forEach(way);
}
// Return the text in a node: the number of blocks, or the share of its most complete sum.
function fullness(node) {
  if (!data.whole.length) return held[node].size;
  const [most] = sums(held[node].keys()).sort((a, b) => b.ids.length / b.whole - a.ids.length / a.whole);
  return most ? `${most.ids.length}/${most.whole}` : `0/${Math.max(...data.whole)}`;
}
function paintNodes(hovered) {
  const radius = Math.max(3, Math.min(0.27 * scale, 22));
  for (let node = 0; node < count; node++) {
    const [x, y] = at(nodes[node]), [colour, bright] = fill(node), marked = node === hovered;
    const kept = !followed || hasFollowed(node);
    pen.globalAlpha = kept ? 1 : 0.45;
    pen.beginPath();
    if (data.relays.includes(node)) pen.rect(x - 0.88 * radius, y - 0.88 * radius, 1.76 * radius, 1.76 * radius);
    else pen.arc(x, y, radius, 0, 7);
    pen.fillStyle = colour; pen.fill();
    pen.lineWidth = marked || followed && kept ? 3 : 1.2;
    pen.strokeStyle = marked || followed && kept ? themed("--trail") : themed("--rim");
    pen.stroke();
    if (radius > 9) {
      pen.fillStyle = bright ? "#fff" : "#202124";
      pen.font = `${Math.round(radius * 0.72)}px system-ui, sans-serif`; pen.textBaseline = "middle";
      pen.fillText(fullness(node), x, y + 0.5);
    }
    pen.globalAlpha = 1;
  }
}
function paintMoving(moving, share) {
  for (const [node, ports, ids] of moving) {
    const [x, y] = token(node, ports, share);
    pen.globalAlpha = isFollowed(ids) ? 1 : 0.15;
    pen.beginPath(); pen.arc(x, y, Math.max(2, 0.085 * scale), 0, 7);
    pen.fillStyle = hue(origin(ids[0])); pen.fill();
    pen.lineWidth = 1; pen.strokeStyle = themed("--paper"); pen.stroke();
  }
  pen.globalAlpha = 1;
}
function paint(place, hovered) {
  const round = Math.min(Math.floor(place), last), share = place - round;
  replay(round);
  pen.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
  paintGround(); paintLinks(); paintTrail(round);
  const moving = round < last && share > 0 ? rounds[round] : [];
  for (const move of moving) {
    pen.strokeStyle = hue(origin(move[2][0]));
    pen.globalAlpha = (move[1].length > 1 ? 0.75 : 0.3) * (isFollowed(move[2]) ? 1 : 0.15);
    pen.lineWidth = Math.max(1.5, 0.07 * scale);
    way(move);
  }
  pen.globalAlpha = 1;
  paintWay(); paintNodes(hovered); paintMoving(moving, share); paintStage();
}
function legend() {
  const bar = $("bar").getContext("2d"), by = $("colour").value, wide = 90;
  for (let x = 0; x < wide; x++) {
    bar.fillStyle = by === "origin" ? hue(Math.floor(x / wide * count)) : by === "age" ? age(x / wide)
      : progress(x / wide);
    bar.fillRect(x, 0, 1, 12);
  }
}
