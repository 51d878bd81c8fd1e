"""Spans: what is recorded, whose word counts, what a receiver that is down costs. Metrics: what promtool and the counters say."""

import json
import os
import re
import subprocess
import time

import pytest

from harness import wire
from harness.collector import Collector
from harness.settings import PROMTOOL

DISCOVERY = "/.well-known/openid-configuration"
SERVER, CLIENT = 2, 3


@pytest.fixture(scope="module")
def collector():
    """A receiver of spans."""
    made = Collector()
    yield made
    made.down()


@pytest.fixture(scope="module")
def traced(world, collector):
    """Records every trace, whoever asks."""
    made = world.start_node(POSTERN_OTLP_ENDPOINT=collector.url + "/", POSTERN_TRACE_RATIO="1", POSTERN_LOG_FORMAT="json", POSTERN_LOG_LEVEL="info")
    yield made
    made.stop()


@pytest.fixture(scope="module")
def proxied(world, collector):
    """Records what a trusted proxy wants, and nothing else."""
    made = world.start_node(POSTERN_OTLP_ENDPOINT=collector.url, POSTERN_TRACE_RATIO="0", POSTERN_TRUSTED_PROXIES="127.0.0.1/32")
    yield made
    made.stop()


def ids():
    """A trace id and a span id of a caller."""
    return os.urandom(16).hex(), os.urandom(8).hex()


def get(node, realm, *fields):
    """Discovery."""
    answer = wire.exchange(node.port, "GET", DISCOVERY, [("Host", realm.host), *fields])
    assert answer.status == 200, answer
    return answer


def of(trace):
    """The spans of a trace, once its request has arrived."""
    def found(spans):
        own = [span for span in spans if span.trace == trace]
        return own if any(span.kind == SERVER for span in own) else None

    return found


def test_a_request_goes_on_with_the_trace_of_its_caller_and_calls_are_below_it(realm, traced, collector):
    """One trace: the caller's span, ours, and one for each call of the database."""
    app = realm.app("app", node=traced)
    refresh = app.sign_in(realm.user())["refresh_token"]
    trace, parent = ids()
    answer = app.token({"grant_type": "refresh_token", **app.credentials(), "refresh_token": refresh}, headers={"traceparent": f"00-{trace}-{parent}-00"})
    assert answer.status == 200, answer
    spans = collector.wait(of(trace))
    request, = [span for span in spans if span.kind == SERVER]
    assert request.name == "POST /connect/token" and request.parent == parent and request.id != parent
    assert request.attributes == {
        "http.request.method": "POST", "http.route": "/connect/token", "http.response.status_code": "200", "postern.realm": realm.slug}
    calls = {span.attributes["db.operation.name"]: span for span in spans if span.kind == CLIENT}
    assert "rotate_session" in calls, calls.keys()
    for span in calls.values():
        assert span.parent == request.id and span.attributes["db.system.name"] == "postgresql"
        assert request.start <= span.start <= span.end <= request.end
    assert collector.paths == {"/v1/traces"}


def test_each_message_is_a_trace_and_nothing_secret_is_exported(realm, traced, collector):
    """The mail of a code."""
    app = realm.app("app", node=traced)
    email = realm.user()
    tokens = app.sign_in(email)
    sent = collector.wait(lambda spans: [span for span in spans if span.name == "send email"])
    assert sent[-1].parent is None and sent[-1].attributes["postern.outcome"] == "accepted"
    assert sent[-1].attributes["postern.channel"] == "email" and sent[-1].attributes["postern.attempt"] == "1"
    below = collector.wait(lambda spans: [span for span in spans if span.parent == sent[-1].id])
    assert {span.trace for span in below} == {sent[-1].trace}
    everything = "".join(collector.bodies)
    for secret in (email, tokens["refresh_token"], tokens["access_token"], realm.host):
        assert secret not in everything


def test_a_worker_s_transaction_is_a_trace_with_a_span_of_each_call(realm, traced, collector):
    """The decision of a request for a code; one in which there was nothing to decide leaves none."""
    realm.app("app", node=traced).sign_in(realm.user())

    def complete(spans):
        own = [span for span in spans if span.name == "decide requests"]
        return own if any(span.name == "decide_code" and span.parent in {one.id for one in own} for span in spans) else None

    for decided in collector.wait(complete):
        assert decided.parent is None and decided.attributes == {"db.system.name": "postgresql"}
        below = {span.name: span for span in collector.spans if span.parent == decided.id}
        assert "take_undecided" in below and {"decide_code", "decide_link_request"} & below.keys(), below.keys()
        for span in below.values():
            assert span.trace == decided.trace and decided.start <= span.start <= span.end <= decided.end
            assert span.attributes["db.operation.name"] == span.name


def test_a_malformed_parent_is_ignored(realm, traced, collector):
    """A trace of our own begins."""
    trace, parent = ids()
    zero = "0" * 32
    for value in (f"00-{trace}-{parent}", f"00-{trace.upper()}A-{parent}-01", f"ff-{trace}-{parent}-01", f"00-{zero}-{parent}-01", "x" * 5000, f"00-{trace}-{parent}-01-"):
        get(traced, realm, ("traceparent", value))
    get(traced, realm, ("traceparent", f"00-{trace}-{parent}-01"), ("traceparent", f"00-{trace}-{parent}-01"))
    marker, parent = ids()
    get(traced, realm, ("traceparent", f"00-{marker}-{parent}-01"))
    collector.wait(of(marker))
    assert not [span for span in collector.spans if trace in span.trace or span.trace == zero]


def test_only_a_trusted_proxy_says_that_a_trace_is_recorded(world, realm, proxied, collector):
    """With a ratio of 0 a stranger's flag records nothing."""
    stranger = world.start_node(POSTERN_OTLP_ENDPOINT=collector.url, POSTERN_TRACE_RATIO="0")
    try:
        refused, unsampled, wanted = ids(), ids(), ids()
        get(stranger, realm, ("traceparent", "00-{}-{}-01".format(*refused)))
        get(proxied, realm, ("traceparent", "00-{}-{}-00".format(*unsampled)))
        get(proxied, realm)
        get(proxied, realm, ("traceparent", "00-{}-{}-01".format(*wanted)))
        span, = collector.wait(of(wanted[0]))
        assert span.parent == wanted[1]
        # Ending exports what is left.
        assert stranger.terminate() == 0
    finally:
        stranger.stop()
    assert not [span for span in collector.spans if span.trace in (refused[0], unsampled[0])]


def test_logs_carry_the_trace(realm, traced):
    """Of a refused token request; also when it is not recorded."""
    trace, parent = ids()
    app = realm.app("app", node=traced)
    assert app.token({"grant_type": "refresh_token", **app.credentials(), "refresh_token": "x"}, headers={"traceparent": f"00-{trace}-{parent}-01"}).status == 400
    line, = [json.loads(row) for row in traced.log().splitlines() if trace in row]
    assert line["message"] == "token" and line["trace"] == trace and line["request"].isdigit()


def test_a_receiver_that_is_down_or_refuses_costs_spans_and_no_request(realm, traced, collector):
    """They are counted; when the receiver is back, later ones arrive."""
    def lost():
        return traced.metric('postern_trace_spans_total{outcome="failed"}') + traced.metric('postern_trace_spans_total{outcome="dropped"}')

    for fault in (collector.down, lambda: setattr(collector, "status", 503)):
        before = lost()
        fault()
        for _ in range(20):
            get(traced, realm)
        deadline = time.monotonic() + 30
        while lost() < before + 20:
            assert time.monotonic() < deadline, traced.ops("/metrics").body.decode()
            time.sleep(0.05)
        collector.down()
        collector.status = 200
        collector.up()
    trace, parent = ids()
    get(traced, realm, ("traceparent", f"00-{trace}-{parent}-01"))
    collector.wait(of(trace))
    assert traced.metric('postern_trace_spans_total{outcome="exported"}') > 0


def test_without_a_receiver_there_are_no_spans(world, realm):
    """And no trace in the logs."""
    trace, parent = ids()
    app = realm.app("app")
    assert app.token({"grant_type": "refresh_token", **app.credentials(), "refresh_token": "x"}, headers={"traceparent": f"00-{trace}-{parent}-01"}).status == 400
    assert trace not in world.node.log()
    assert world.node.metric('postern_trace_spans_total{outcome="exported"}') == 0


def test_a_bad_endpoint_or_ratio_is_said_at_the_start(world):
    """One line names the setting."""
    from harness.node import run_postern
    for name, value in (("POSTERN_OTLP_ENDPOINT", "http://collector.example:4318"), ("POSTERN_OTLP_ENDPOINT", "https://u@h/"),
                        ("POSTERN_TRACE_RATIO", "1.5"), ("POSTERN_TRACE_RATIO", "half")):
        ended = run_postern("serve", environment={**world.node.environment, name: value})
        assert ended.returncode == 1 and name in ended.stderr, ended.stderr


def test_refreshes_grants_batches_and_the_sweeper_are_counted(world, realm):
    """By what came of them."""
    node = world.node
    app = realm.app("app")

    def counts():
        return [node.metric(f'postern_refreshes_total{{outcome="{outcome}"}}') for outcome in ("rotated", "retried", "reuse")]

    first = app.sign_in(realm.user())["refresh_token"]
    before, batches = counts(), node.metric('postern_batch_size_count{batch="rotations"}')
    grants = node.metric('postern_grant_duration_seconds_count{grant="refresh_token",outcome="ok"}')
    second = app.refreshed(first)["refresh_token"]
    assert app.refreshed(first)["refresh_token"] == second
    app.refreshed(second)
    assert app.refresh(first).status == 400
    assert [after - was for after, was in zip(counts(), before)] == [2, 1, 1]
    assert node.metric('postern_batch_size_count{batch="rotations"}') > batches
    assert node.metric('postern_grant_duration_seconds_count{grant="refresh_token",outcome="ok"}') == grants + 3
    assert abs(node.metric("postern_sweep_last_success_timestamp_seconds") - time.time()) < 60
    deadline = time.monotonic() + 30
    while node.metric("postern_sweep_duration_seconds_count") < 1:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_prometheus_finds_nothing_wrong_with_the_metrics(world, realm):
    """Names, types, help texts, buckets and labels, by its own linter."""
    get(world.node, realm)
    text = world.node.ops("/metrics").body
    names = re.findall(r"^# TYPE (\S+) ", text.decode(), re.MULTILINE)
    assert len(names) == len(set(names)) and "# HELP postern_connections " in text.decode() and "Not described." not in text.decode()
    if PROMTOOL is None:
        pytest.skip("promtool is not installed")
    done = subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
