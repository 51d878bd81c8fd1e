"""Many requests at the same instant, each on a connection of its own."""

import threading

from . import wire


def volley(port, requests):
    """Sends all requests at a barrier; returns the answers (or exceptions) in the order of the requests."""
    connections = [wire.Connection(port, timeout=30) for _ in requests]
    barrier = threading.Barrier(len(requests))
    answers = [None] * len(requests)

    def fire(index):
        try:
            barrier.wait(30)
            connections[index].send(requests[index])
            answers[index] = connections[index].receive()
        except Exception as problem:  # pylint: disable=broad-except  # a finding, reported by the caller
            answers[index] = problem

    threads = [threading.Thread(target=fire, args=(index,)) for index in range(len(requests))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for connection in connections:
        connection.close()
    return answers


def token_request(app, form):
    """The bytes of a token request."""
    return wire.request_bytes(
        "POST", "/connect/token", {"Host": app.host, "Content-Type": wire.FORM}, wire.form_body(form)
    )


def in_parallel(work, items, threads=8):
    """Runs `work(item)` for all items on a few threads and returns the results in order; the first failure is raised."""
    items = list(items)
    results, failures = [None] * len(items), []
    remaining = iter(range(len(items)))
    lock = threading.Lock()

    def run():
        while not failures:
            with lock:
                index = next(remaining, None)
            if index is None:
                return
            try:
                results[index] = work(items[index])
            except BaseException as problem:  # pylint: disable=broad-except  # raised again below
                failures.append(problem)

    workers = [threading.Thread(target=run) for _ in range(min(threads, len(items)))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failures:
        raise failures[0]
    return results
