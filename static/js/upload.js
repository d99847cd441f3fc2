// The import form: an archive that is too large is refused before it is sent, and the upload shows
// how far it is. The page that answers is then opened, or its form put in the place of this one.
import { nodes } from "notewire/html";
import { leadsToLogin } from "notewire/session";
import { toast } from "notewire/toasts";

function fits(form) {
  const file = form.elements.file.files[0];
  const isTooLarge = Boolean(file) && file.size > Number(form.dataset.maxBytes);
  form.querySelector(".too-large").hidden = !isTooLarge;
  form.elements.file.setAttribute("aria-invalid", isTooLarge);
  return !isTooLarge;
}

document.addEventListener("change", ({ target }) => {
  if (target.name === "file") fits(target.form);
});

document.addEventListener("submit", (event) => {
  const form = event.target.closest("form.import");
  if (!form) return;
  event.preventDefault();
  if (fits(form)) send(form);
  else form.elements.file.focus();
});

function send(form) {
  const request = new XMLHttpRequest();
  const uploading = form.querySelector(".uploading");
  const button = form.querySelector("button");
  const bar = uploading.querySelector("progress");
  const sending = (is) => {
    uploading.hidden = !is;
    button.disabled = is;
  };
  request.open("POST", form.action);
  request.setRequestHeader("Accept", "text/html");
  request.upload.addEventListener("progress", ({ loaded, total }) => {
    bar.max = total;
    bar.value = loaded;
  });
  request.addEventListener("error", () => {
    sending(false);
    toast("The server cannot be reached, or broke off the upload.", { error: true });
  });
  request.addEventListener("load", () => {
    if (leadsToLogin(request.responseURL)) return sending(false);
    if (request.responseURL !== form.action) return location.assign(request.responseURL);
    sending(false);
    const answered = nodes(request.responseText).querySelector("form.import");
    if (answered) form.replaceWith(answered);
    else toast(`The server answered with ${request.status}. Nothing was changed.`, { error: true });
  });
  request.send(new FormData(form));
  sending(true);
}
