const at = id => document.getElementById(id);
const post = async (path, form = {}) => {
  const answer = await fetch(path, { method: "POST", body: new URLSearchParams(form) }), said = await answer.json();
  if (!answer.ok) throw new Error(said.error_description ?? said.error ?? said.Message);
  return said;
};
const show = async () => {
  const answer = await fetch("/api/me");
  [at("out").hidden, at("in").hidden] = [answer.ok, !answer.ok];
  at("me").textContent = answer.ok ? await answer.text() : "";
};
const on = (id, event, step) => at(id).addEventListener(event, async occurred => {
  occurred.preventDefault();
  at("said").textContent = await step(occurred.target).then(said => said ?? "", problem => problem.message);
});
const code = form => post("/code", new FormData(form)), passkey = made => ({ credential: JSON.stringify(made) });
on("ask", "submit", form => code(form).then(() => { at("redeem").hidden = false; }));
on("redeem", "submit", form => code(form).then(show));
on("passkey", "click", async () => {
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(await post("/passkey"));
  await post("/passkey", passkey(await navigator.credentials.get({ publicKey }))).then(show);
});
on("new", "click", async () => {
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(await post("/passkey/new"));
  return (await post("/passkey/new", passkey(await navigator.credentials.create({ publicKey })))).Message;
});
on("leave", "click", () => post("/sign-out").then(show));
await show();
