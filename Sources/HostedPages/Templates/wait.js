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
        if (state === "pending") {
            setTimeout(ask, interval);
            return;
        }
        status.textContent = status.dataset[state];
        button.disabled = false;
        if (state === "confirmed" && "submit" in form.dataset) form.requestSubmit(button);
        else if (state === "confirmed") button.focus();
    };
    setTimeout(ask, interval);
})();
