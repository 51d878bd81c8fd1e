"use strict";
// Runs the passkey ceremony of the page and puts its result into the form.
(() => {
    if (!window.PublicKeyCredential) return;
    const form = document.querySelector("form[data-passkey]");
    const button = form.querySelector("button[data-ceremony]");
    const creates = form.dataset.passkey === "create";
    const fault = form.querySelector("[data-passkey-fault]");
    const field = form.elements[creates ? "attestation" : "assertion"];
    let options = JSON.parse(form.dataset.options);
    let begun = Date.now();
    let waiting;

    const bytes = text => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), c => c.charCodeAt(0));
    const text = buffer => btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");
    const binary = member => Array.isArray(member) ? member.map(one => ({ ...one, id: bytes(one.id) })) : bytes(member);

    const request = () => {
        const request = { ...options, challenge: bytes(options.challenge) };
        for (const name of ["allowCredentials", "excludeCredentials"]) if (options[name]) request[name] = binary(options[name]);
        if (options.user) request.user = { ...options.user, id: bytes(options.user.id) };
        return request;
    };

    const json = credential => {
        const { response } = credential;
        const parts = creates ? ["clientDataJSON", "attestationObject"] : ["clientDataJSON", "authenticatorData", "signature", "userHandle"];
        const result = Object.fromEntries(parts.filter(name => response[name]).map(name => [name, text(response[name])]));
        if (creates) result.transports = response.getTransports?.() ?? [];
        return JSON.stringify({
            id: credential.id, rawId: text(credential.rawId), type: credential.type, response: result,
            authenticatorAttachment: credential.authenticatorAttachment ?? undefined,
            clientExtensionResults: credential.getClientExtensionResults(),
        });
    };

    // The page holds the ceremony: a page that is older gets a new one, and what was typed stays.
    const renew = async () => {
        if (Date.now() - begun < options.timeout - 25000) return;
        const answer = await fetch(location.href);
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("form[data-passkey]");
        if (!fresh) return location.reload();
        options = JSON.parse(fresh.dataset.options);
        form.elements.tx.value = fresh.elements.tx.value;
        begun = Date.now();
    };

    const run = async mediation => {
        waiting?.abort();
        const own = waiting = new AbortController();
        if (!mediation) fault.hidden = true;
        try {
            await renew();
            const parameters = { publicKey: request(), signal: own.signal };
            if (mediation) parameters.mediation = mediation;
            const credential = await navigator.credentials[creates ? "create" : "get"](parameters);
            field.value = json(credential);
            form.noValidate = true;
            form.requestSubmit(button);
        } catch {
            // Cancelled, or no passkey. Only a person who chose the button waits for an answer.
            if (mediation || waiting !== own) return;
            fault.textContent = fault.dataset.passkeyFault;
            fault.hidden = false;
            conditional();
        }
    };

    const conditional = async () => {
        if (creates || !await PublicKeyCredential.isConditionalMediationAvailable?.()) return;
        run("conditional");
        const own = waiting;
        setTimeout(() => waiting === own && conditional(), Math.max(options.timeout - 20000, 10000));
    };

    button.hidden = false;
    for (const part of form.querySelectorAll("[data-with-passkey]")) part.hidden = false;
    button.addEventListener("click", event => {
        if (field.value) return;
        event.preventDefault();
        run();
    });
    conditional();
})();
