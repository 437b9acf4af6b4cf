// Passkeys: forms with data-passkey request a credential from the browser, and send it as `credential`.
// data-passkey is "make" or "show"; the WebAuthn options are in data-options, or at the URL in data-ask.

const FAILED = "The browser returned no passkey. Try again, or use another method.";
/** @type {Record<string, string>} Texts for the names of errors. */
const MESSAGES = { NotAllowedError: "Cancelled, or timed out. Try again.", InvalidStateError: "This device already has a passkey for this console.", SecurityError: "Passkeys need HTTPS and a host name, or localhost." };

/** @param {string} text */
function decodeBase64Url(text) {
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
}

/** @param {ArrayBuffer} buffer */
function encodeBase64Url(buffer) {
  const plain = String.fromCharCode(...new Uint8Array(buffer));
  return btoa(plain).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** @param {any} question WebAuthn options as JSON, with buffers as base64url. */
function decodeOptions(question) {
  /** @param {{ id: string }[]} list */
  const known = (list) => (list ?? []).map((one) => ({ ...one, id: decodeBase64Url(one.id) }));
  const read = { ...question, challenge: decodeBase64Url(question.challenge) };
  if (question.user) read.user = { ...question.user, id: decodeBase64Url(question.user.id) };
  if (question.allowCredentials) read.allowCredentials = known(question.allowCredentials);
  if (question.excludeCredentials) read.excludeCredentials = known(question.excludeCredentials);
  return read;
}

/** @param {any} credential a PublicKeyCredential of either kind */
function serializeCredential(credential) {
  const { response } = credential;
  /** @type {Record<string, string>} */
  const parts = {};
  for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) {
    if (response[name]) parts[name] = encodeBase64Url(response[name]);
  }
  return {
    id: credential.id,
    rawId: encodeBase64Url(credential.rawId),
    type: credential.type,
    authenticatorAttachment: credential.authenticatorAttachment ?? undefined,
    clientExtensionResults: credential.getClientExtensionResults(),
    response: parts,
  };
}

/** @param {HTMLFormElement} form */
async function loadOptions(form) {
  if (form.dataset.options) return JSON.parse(form.dataset.options).publicKey;
  const answer = await fetch(form.dataset.ask, { headers: { Accept: "application/json" } });
  return (await answer.json()).publicKey;
}

/** @param {HTMLFormElement} form */
async function requestCredential(form) {
  const publicKey = decodeOptions(await loadOptions(form));
  const make = form.dataset.passkey === "make";
  return make ? navigator.credentials.create({ publicKey }) : navigator.credentials.get({ publicKey });
}

/** @param {SubmitEvent} event */
async function handleSubmit(event) {
  const form = /** @type {HTMLFormElement | null} */ (event.target.closest?.("form[data-passkey]"));
  const field = form && /** @type {HTMLInputElement} */ (form.elements.namedItem("credential"));
  if (!form || field.value) return;
  event.preventDefault();
  event.stopPropagation();
  const said = form.querySelector("[data-passkey-error]");
  const button = form.querySelector("button");
  said.hidden = true;
  button.setAttribute("aria-busy", "true");
  try {
    field.value = JSON.stringify(serializeCredential(await requestCredential(form)));
    form.requestSubmit();
  } catch (error) {
    said.textContent = MESSAGES[/** @type {Error} */ (error).name] ?? FAILED;
    said.hidden = false;
  } finally {
    button.removeAttribute("aria-busy");
  }
}

// Forms stay hidden in browsers without passkeys.
function revealForms() {
  if (!window.PublicKeyCredential) return;
  for (const form of document.querySelectorAll("form[data-passkey][hidden]")) form.hidden = false;
}

// Run before htmx, which would send the form without a credential.
document.addEventListener("submit", handleSubmit, { capture: true });
document.addEventListener("htmx:afterSwap", revealForms);
revealForms();
