// Pictures: a click, or Enter, shows a picture as large as the window. Without this script the link
// opens the file of the picture.
"use strict";

const dialog = document.createElement("dialog");
dialog.className = "enlarged";
dialog.setAttribute("aria-label", "Enlarged picture");
const close = document.createElement("button");
close.type = "button";
close.textContent = "Close";
close.onclick = () => dialog.close();
const picture = document.createElement("img");
dialog.append(close, picture);
// A click beside the picture closes it; Escape does so by itself.
dialog.onclick = event => { if (event.target === dialog) dialog.close(); };

for (const link of document.querySelectorAll("article a:is(.only-light, .only-dark, .image-reference)")) {
  const image = link.querySelector("img");
  if (!image) continue;
  link.title = "Enlarge this picture";
  link.setAttribute("aria-haspopup", "dialog");
  link.addEventListener("click", event => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    picture.src = link.href;
    picture.alt = image.alt;
    if (!dialog.isConnected) document.body.append(dialog);
    dialog.showModal();
  });
}

// Animations are light or dark as the page is.
const frames = document.querySelectorAll("iframe.animation");
function setThemes() {
  const { theme } = document.body.dataset;
  for (const frame of frames) frame.contentWindow.postMessage({ theme }, "*");
}
for (const frame of frames) frame.addEventListener("load", setThemes);
new MutationObserver(setThemes).observe(document.body, { attributeFilter: ["data-theme"] });
setThemes();
