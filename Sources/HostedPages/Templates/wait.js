"use strict";
// Asks at intervals whether the link was opened. Without script a person chooses "Continue".
(() => {
    const form = document.querySelector("form[data-wait]");
    const status = document.getElementById("status");
    const button = form.querySelector("button[value=continue]");
    let interval = Number(form.dataset.wait) * 1000;
    button.disabled = true;
    const ask = async () => {
        let state = "pending";
        try {
            const answer = await fetch("/sign-in/wait", { method: "POST", body: new URLSearchParams({ tx: form.elements.tx.value }) });
            if (answer.ok) state = (await answer.json()).state;
            if (answer.status === 429) interval += 5000;
        } catch { /* The next question will tell. */ }
        if (state === "pending") setTimeout(ask, interval);
        else tell(state);
    };
    // The page says what happened: its number and its first instruction are of no use any more.
    const tell = state => {
        const heading = document.querySelector("h1");
        const title = status.dataset[`${state}Title`];
        document.title = document.title.replace(heading.textContent, title);
        heading.textContent = title;
        document.querySelector("[data-pending]").hidden = true;
        status.textContent = status.dataset[state];
        button.disabled = false;
        if (state === "confirmed") {
            if ("submit" in form.dataset) form.requestSubmit(button);
            else button.focus();
            return;
        }
        const again = form.querySelector("[data-again]");
        if (!again) return;
        button.hidden = true;
        again.textContent = again.dataset.again;
        again.className = "primary";
        button.after(again);
        again.focus();
    };
    setTimeout(ask, interval);
})();
