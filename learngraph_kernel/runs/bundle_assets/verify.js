/**
 * Checks the bundle this script stands in, in the reader's browser: every embedded file against the sealed statement,
 * the statement's signature, the chain of events, and that the report on show is the sealed one. No network, no
 * dependency; the bytes are hashed as they are embedded, so nothing needs to be canonicalised. What it can't check is
 * whether the signer is who you think: compare the fingerprint. `learngraph verify` checks this page as well, script
 * included, and is the stricter of the two.
 */

const ZEROS = "0".repeat(64);
const UNSEALED = new Set(["seal.dsse.json", "key.pub", "after_seal.jsonl"]);
/** The end of every canonical event (members are sorted, so nothing but these follows `data`). */
const TAIL = /,"hash":"([0-9a-f]{64})","prev":"([0-9a-f]{64})","run":"([^"\\]*)","seq":([1-9][0-9]{0,15}),"type":"[^"\\]*"\}$/;

const WORDS = {
  en: {
    checking: "Checking…",
    good: "Verified: every file, every event and the signature fit.",
    unsigned: "Every file and every event fit; this browser cannot check Ed25519 signatures. Check the signature with: learngraph verify FILE",
    bad: (/** @type {number} */ count) => `Not what was sealed: ${count} finding${count === 1 ? "" : "s"}.`,
    impossible: "This browser offers no cryptography to a page opened this way. Check with: learngraph verify FILE",
  },
  zh: {
    checking: "正在校验……",
    good: "校验通过：所有文件、所有事件和签名均相符。",
    unsigned: "所有文件和事件均相符；此浏览器不能校验 Ed25519 签名，请运行：learngraph verify FILE",
    bad: (/** @type {number} */ count) => `与封存内容不符：${count} 处。`,
    impossible: "此浏览器不向以此方式打开的页面提供密码学功能，请运行：learngraph verify FILE",
  },
};

/** @typedef {{place: string, what: string}} Finding */

/** @param {string} text @returns {Uint8Array} throws when the text is not the one base64 spelling of its bytes */
function decodeBase64(text) {
  const binary = atob(text);
  if (btoa(binary) !== text) throw new Error("not canonical base64");
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

/** @param {Uint8Array} bytes */
async function sha256(bytes) {
  const hash = await crypto.subtle.digest("SHA-256", bytes);
  return Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const text = (/** @type {Uint8Array} */ bytes) => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
const bytes = (/** @type {string} */ value) => new TextEncoder().encode(value);

/** The embedded files; those that cannot be decoded are findings. @param {Finding[]} findings */
function embedded(findings) {
  const files = new Map();
  for (const element of document.querySelectorAll('script[type="application/x-learngraph-file"]')) {
    const name = element.dataset.name ?? "";
    try {
      files.set(name, decodeBase64(element.textContent ?? ""));
    } catch (error) {
      findings.push({ place: name, what: `${name} is damaged: ${error.message}` });
      files.set(name, new Uint8Array());
    }
  }
  return files;
}

/** One side of the ledger. @returns {Promise<{count: number, head: string}>} */
async function checkEvents(/** @type {Uint8Array} */ data, name, run, first, previous, findings) {
  const lines = text(data).split("\n");
  if (lines.pop() !== "") findings.push({ place: name, what: `${name} ends in the middle of an event` });
  let number = first - 1;
  let head = previous;
  for (const line of lines) {
    number += 1;
    const tail = TAIL.exec(line);
    const place = `${name}, event ${number}`;
    if (!tail) {
      findings.push({ place, what: `event ${number} was altered` });
      continue;
    }
    const body = line.slice(0, tail.index) + line.slice(tail.index + 74);
    if ((await sha256(bytes(body))) !== tail[1]) findings.push({ place, what: `event ${number} was altered` });
    else if (Number(tail[4]) !== number) findings.push({ place, what: `event ${tail[4]} stands where event ${number} belongs` });
    else if (tail[2] !== head) findings.push({ place, what: `event ${number} follows another event` });
    else if (tail[3] !== run) findings.push({ place, what: `event ${number} is of another run` });
    head = tail[1];
  }
  return { count: number, head };
}

/** Whether the signature fits; null when this browser can't say. */
async function checkSignature(/** @type {Uint8Array} */ der, /** @type {Uint8Array} */ signature, type, payload) {
  let key;
  try {
    key = await crypto.subtle.importKey("spki", der, { name: "Ed25519" }, false, ["verify"]);
  } catch (error) {
    if (error.name === "NotSupportedError") return null;
    return false;
  }
  const start = bytes(`DSSEv1 ${bytes(type).length} ${type} ${payload.length} `);
  const message = new Uint8Array(start.length + payload.length);
  message.set(start);
  message.set(payload, start.length);
  return crypto.subtle.verify({ name: "Ed25519" }, key, signature, message);
}

/** The envelope, its signature and its statement. */
async function checkSeal(files, findings) {
  const envelope = JSON.parse(text(files.get("seal.dsse.json")));
  const payload = decodeBase64(envelope.payload);
  const [{ keyid, sig }] = envelope.signatures;
  const der = decodeBase64(text(files.get("key.pub")).replace(/-----[A-Z ]+-----|\n/g, ""));
  const fingerprint = await sha256(der);
  if (fingerprint !== keyid) findings.push({ place: "key.pub", what: "key.pub is not the key that the seal names" });
  const signed = await checkSignature(der, decodeBase64(sig), envelope.payloadType, payload);
  if (signed === false) findings.push({ place: "seal.dsse.json", what: "the signature is not valid" });
  return { statement: JSON.parse(text(payload)), keyid, signed };
}

async function checkFiles(statement, files, findings) {
  const listed = new Map(statement.subject.map((item) => [item.name, item.digest.sha256]));
  for (const [name, expected] of listed) {
    if (!files.has(name)) findings.push({ place: name, what: `${name} is sealed but is not in the bundle` });
    else if ((await sha256(files.get(name))) !== expected) findings.push({ place: name, what: `${name} is not what was sealed` });
  }
  for (const name of files.keys()) {
    if (!listed.has(name) && !UNSEALED.has(name)) findings.push({ place: name, what: `${name} is not part of the sealed run` });
  }
}

async function checkLedger(predicate, files, findings) {
  const sealed = await checkEvents(files.get("ledger.jsonl"), "ledger.jsonl", predicate.run, 1, ZEROS, findings);
  if (sealed.count !== predicate.ledger.events || sealed.head !== predicate.ledger.head) {
    findings.push({ place: "ledger.jsonl", what: `${sealed.count} events instead of the ${predicate.ledger.events} that were sealed, or others` });
  }
  const later = files.get("after_seal.jsonl");
  if (!later) findings.push({ place: "after_seal.jsonl", what: "the events after the seal are missing" });
  else await checkEvents(later, "after_seal.jsonl", predicate.run, predicate.ledger.events + 1, predicate.ledger.head, findings);
}

/** The report and the facts on show are the sealed ones. */
function checkShown(facts, files, findings) {
  for (const element of document.querySelectorAll("[data-fact]")) {
    const name = element.dataset.fact;
    if (element.textContent !== String(facts[name])) {
      findings.push({ place: "page", what: `the ${name} on show is not the sealed one, which is ${facts[name]}` });
    }
  }
  const frame = document.querySelector("iframe");
  const report = files.get("report.html");
  const lines = (/** @type {string} */ value) => value.replace(/\r\n?/g, "\n");
  if (Boolean(frame) !== Boolean(report) || (frame && report && lines(frame.srcdoc) !== lines(text(report)))) {
    findings.push({ place: "report.html", what: "the report on show is not the sealed report" });
  }
}

/** @returns {Promise<{findings: Finding[], signed: boolean | null}>} */
async function check() {
  /** @type {Finding[]} */
  const findings = [];
  const files = embedded(findings);
  let signed = null;
  let place = "seal.dsse.json";
  try {
    const seal = await checkSeal(files, findings);
    signed = seal.signed;
    await checkFiles(seal.statement, files, findings);
    place = "ledger.jsonl";
    await checkLedger(seal.statement.predicate, files, findings);
    place = "report.html";
    checkShown({ ...seal.statement.predicate, keyid: seal.keyid }, files, findings);
  } catch (error) {
    findings.push({ place, what: `${place} cannot be read: ${error.message}` });
  }
  return { findings, signed };
}

/** @param {string} state @param {string} words */
function show(state, words) {
  const verdict = document.getElementById("verdict");
  verdict.dataset.state = state;
  verdict.textContent = words;
}

async function main() {
  const words = document.documentElement.lang.startsWith("zh") ? WORDS.zh : WORDS.en;
  if (!globalThis.crypto?.subtle) {
    show("unchecked", words.impossible);
    return;
  }
  show("unchecked", words.checking);
  const { findings, signed } = await check();
  const places = new Set(findings.map((finding) => finding.place.split(",")[0]));
  for (const row of document.querySelectorAll("tr[data-name]")) {
    const bad = places.has(row.dataset.name);
    row.dataset.state = bad ? "bad" : "good";
    row.cells[0].textContent = bad ? "✗" : "✓";
  }
  const list = document.getElementById("findings");
  for (const finding of findings) {
    const item = document.createElement("li");
    item.textContent = finding.place === finding.what ? finding.what : `${finding.place}: ${finding.what}`;
    list.append(item);
  }
  if (findings.length) show("bad", words.bad(findings.length));
  else show(signed ? "good" : "unchecked", signed ? words.good : words.unsigned);
}

main();
