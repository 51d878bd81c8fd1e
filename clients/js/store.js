// Postern's modules, what is kept: in IndexedDB of the page's origin, or in memory.

// Keys by server, documents by client, and for 15 minutes the transactions that a link may lead back to.
const memory = { keys: new Map(), transactions: new Map(), documents: new Map() };
let opened;

const database = () => opened ??= new Promise((resolve, reject) => {
  const request = indexedDB.open("postern", 2);
  request.onupgradeneeded = () => Object.keys(memory).forEach(name => {
    if (!request.result.objectStoreNames.contains(name)) request.result.createObjectStore(name);
  });
  request.onsuccess = () => {
    const { result } = request;
    // The person deleted the site's data, or a newer version of this file brings another database.
    result.onclose = () => { opened = undefined; };
    result.onversionchange = () => { result.close(); opened = undefined; };
    resolve(result);
  };
  request.onerror = reject;
  // A page with an older version closes it when it is asked to, unless it is frozen.
  request.onblocked = () => setTimeout(reject, 3000);
});

/** Runs `body(store)` in one transaction. - Resolves: when that is over. - Rejects: when it changed nothing. */
export const transact = async (name, body) => {
  const transaction = (await database()).transaction(name, "readwrite");
  await new Promise((resolve, reject) => {
    transaction.oncomplete = resolve;
    transaction.onerror = transaction.onabort = () => reject(transaction.error);
    body(transaction.objectStore(name), transaction);
  });
};

/** The same; does nothing where IndexedDB does not work. */
export const stored = (name, body) => transact(name, body).catch(() => {});

/** The value under a key; else `made`, which is then kept. Of two callers or pages at once, both get the same. */
export const keep = async (name, key, made) => {
  const map = memory[name];
  let value = made;
  if (!map.has(key)) {
    await stored(name, store => {
      store.get(key).onsuccess = ({ target }) => {
        value = target.result ?? made;
        if (made && value === made) store.put(made, key);
      };
    });
    if (value && !map.has(key)) map.set(key, value);
  }
  return map.get(key);
};

/** Another page may have changed what the store has. */
export const recall = (name, key) => memory[name].delete(key);

export const forget = (name, key) => {
  recall(name, key);
  return stored(name, store => store.delete(key));
};

/** Forgets transactions that are over. */
export const sweep = () => stored("transactions", store => {
  store.openCursor().onsuccess = ({ target: { result: cursor } }) => {
    if (cursor?.value.at < Date.now() - 15 * 60_000) cursor.delete();
    cursor?.continue();
  };
});
