// Passkeys: forms marked data-passkey ask the browser first, then send its answer as `credential`.
// data-passkey is "make" or "show"; the question is in data-options, or at the address in data-ask.

const FAILED = "The browser did not give a passkey. Try again, or use another way.";
const LONG = { NotAllowedError: "It was cancelled, or took too long.", InvalidStateError: "This device has a passkey here already.", SecurityError: "Passkeys need HTTPS and a host name, or localhost." };

function bytes(text) {
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
}

function text(buffer) {
  const plain = String.fromCharCode(...new Uint8Array(buffer));
  return btoa(plain).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function read(question) {
  const known = (list) => (list ?? []).map((one) => ({ ...one, id: bytes(one.id) }));
  const read = { ...question, challenge: bytes(question.challenge) };
  if (question.user) read.user = { ...question.user, id: bytes(question.user.id) };
  if (question.allowCredentials) read.allowCredentials = known(question.allowCredentials);
  if (question.excludeCredentials) read.excludeCredentials = known(question.excludeCredentials);
  return read;
}

function written(credential) {
  const { response } = credential;
  const parts = {};
  for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) {
    if (response[name]) parts[name] = text(response[name]);
  }
  return {
    id: credential.id,
    rawId: text(credential.rawId),
    type: credential.type,
    authenticatorAttachment: credential.authenticatorAttachment ?? undefined,
    clientExtensionResults: credential.getClientExtensionResults(),
    response: parts,
  };
}

async function question(form) {
  if (form.dataset.options) return JSON.parse(form.dataset.options).publicKey;
  const answer = await fetch(form.dataset.ask, { headers: { Accept: "application/json" } });
  return (await answer.json()).publicKey;
}

async function ask(form) {
  const publicKey = read(await question(form));
  const make = form.dataset.passkey === "make";
  return make ? navigator.credentials.create({ publicKey }) : navigator.credentials.get({ publicKey });
}

async function submitted(event) {
  const form = event.target.closest?.("form[data-passkey]");
  if (!form || form.elements.credential.value) return;
  event.preventDefault();
  event.stopPropagation();
  const said = form.querySelector("[data-passkey-said]");
  const button = form.querySelector("button");
  said.hidden = true;
  button.setAttribute("aria-busy", "true");
  try {
    form.elements.credential.value = JSON.stringify(written(await ask(form)));
    form.requestSubmit();
  } catch (error) {
    said.textContent = LONG[error.name] ?? FAILED;
    said.hidden = false;
  } finally {
    button.removeAttribute("aria-busy");
  }
}

// A form that can only fail here stays hidden.
function reveal() {
  if (!window.PublicKeyCredential) return;
  for (const form of document.querySelectorAll("form[data-passkey][hidden]")) form.hidden = false;
}

// Before htmx hears of it: in the dialog it would send the form without an answer.
document.addEventListener("submit", submitted, { capture: true });
document.addEventListener("htmx:afterSwap", reveal);
for (const button of document.querySelectorAll("[data-print]")) {
  button.hidden = false;
  button.addEventListener("click", () => window.print());
}
reveal();
