"""The alert rules and the dashboard of deploy/ are about metrics that exist, cover those of docs/operate.md, and work. Needs no server."""

import json
import re
import shutil
import subprocess

import pytest

from harness import report
from harness.settings import PROMTOOL, REPOSITORY
from test_operations_documented import in_first_column, section

RULES = REPOSITORY / "deploy/prometheus/postern.rules.yml"
DASHBOARD = json.loads((REPOSITORY / "deploy/grafana/postern.json").read_text(encoding="utf-8"))
TABLE = section("Metrics and alarms")
METRICS = {name for name in in_first_column(TABLE) if name.startswith("postern_")}
_METRIC = re.compile(r"\bpostern_[a-z_]+")
#: What Prometheus makes of a histogram.
_PARTS = re.compile(r"_(bucket|sum|count)$")

_UP = {'up{job="postern",instance="a"}': "1x400"}
_WHOLE = {
    **_UP, 'postern_configuration_version{instance="a"}': "7x400", 'postern_configuration_realms{instance="a"}': "3x400",
    'postern_queue_entries{instance="a",queue="mail"}': "4x400",
}
#: Of each alert: series that it is for, and beside which no other sign is needed.
FIRES = {
    "PosternDown": {'up{job="postern",instance="a"}': "0x400"},
    "PosternConfigurationUnknown": _UP,
    "PosternQueuesUnknown": _UP,
    "PosternConfigurationDiffers": {'postern_configuration_version{instance="b"}': "8x400"},
    "PosternManyConnections": {'postern_connections{instance="a"}': "8100x400"},
    "PosternManyHeldRequests": {'postern_held_requests{instance="a"}': "8100x400"},
    "PosternConnectionsRefused": {'postern_connections_refused_total{instance="a",limit="process"}': "_x27 1x9"},
    "PosternConnectionsDropped": {'postern_connections_dropped_total{instance="a"}': "0x27 1x9"},
    "PosternAcceptPaused": {'postern_accept_pauses_total{instance="a"}': "0x27 1x9"},
    "PosternUnavailableAnswers": {
        'postern_http_requests_total{instance="a",status="503",route="/connect/token"}': "0+2x400",
        'postern_http_requests_total{instance="a",status="200",route="/connect/token"}': "0+100x400"},
    "PosternTokensSlow": {
        'postern_http_request_duration_seconds_bucket{instance="a",route="/connect/token",le="0.5"}': "0+90x400",
        'postern_http_request_duration_seconds_bucket{instance="a",route="/connect/token",le="1"}': "0+100x400",
        'postern_http_request_duration_seconds_bucket{instance="a",route="/connect/token",le="+Inf"}': "0+100x400"},
    "PosternRefreshesRefused": {
        'postern_grants_total{instance="a",grant="refresh_token",outcome="invalid_grant"}': "0+1x290 290+200x20"},
    "PosternRefreshReuse": {'postern_refreshes_total{instance="a",outcome="reuse"}': "0x25 1x9"},
    "PosternRefreshesRepeated": {
        'postern_refreshes_total{instance="a",outcome="retried"}': "0+60x400", 'postern_refreshes_total{instance="a",outcome="rotated"}': "0+300x400"},
    "PosternBatchesWait": {
        'postern_batch_wait_seconds_bucket{instance="a",batch="rotations",le="0.25"}': "0+90x400",
        'postern_batch_wait_seconds_bucket{instance="a",batch="rotations",le="0.5"}': "0+100x400",
        'postern_batch_wait_seconds_bucket{instance="a",batch="rotations",le="+Inf"}': "0+100x400"},
    "PosternSweeperStopped": {'postern_sweep_last_success_timestamp_seconds{instance="a"}': "1x400"},
    "PosternSpansLost": {'postern_trace_spans_total{instance="a",outcome="dropped"}': "0x20 1x19"},
    "PosternSeriesRefused": {'postern_metrics_series_refused_total{instance="a"}': "0x25 1x9"},
    "PosternClockDrifts": {'postern_clock_difference_seconds{instance="a"}': "-6x400"},
    "PosternPoolExhausted": {'postern_pool_connections{instance="a",state="free"}': "0x400"},
    "PosternPoolReconnects": {'postern_pool_connections{instance="a",state="connecting"}': "1x400"},
    "PosternRequestsWaitForPool": {'postern_pool_waiting{instance="a"}': "11x400"},
    "PosternMailQueueLong": {'postern_queue_entries{instance="a",queue="mail"}': "5001x400"},
    "PosternQueueOld": {'postern_queue_oldest_seconds{instance="a",queue="requests"}': "11x400"},
    "PosternRealmMailQueueLong": {'postern_queue_realm_entries{instance="a",queue="mail",realm="acme"}': "8001x400"},
    "PosternMessagesRetried": {'postern_messages_total{instance="a",channel="sms",outcome="retried"}': "0+60x400"},
    "PosternMessagesDead": {'postern_messages_total{instance="a",channel="sms",outcome="dead"}': "_x25 1x9"},
    "PosternEventsFail": {'postern_webhook_events_total{instance="a",outcome="failed"}': "0+60x400"},
    "PosternEventsRefused": {'postern_webhook_events_total{instance="a",outcome="refused"}': "_x25 1x9"},
    "PosternEventsLate": {'postern_webhook_lag_seconds{instance="a",realm="acme",webhook="w"}': "301x400"},
    "PosternWebhookRefusedEvents": {'postern_webhook_refused_events{instance="a",realm="acme",webhook="w"}': "0x25 1x9"},
    "PosternSourcesLimited": {
        'postern_rate_limit_exceeded_total{instance="a",policy="native-otp",dimension="source",mode="enforce"}': "0+61x400"},
    "PosternWrongCodes": {'postern_wrong_codes_total{instance="a"}': "0+1x290 290+200x20"},
    "PosternCodesLocked": {'postern_code_lockouts_total{instance="a"}': "0x25 1x9"},
    "PosternCodesBraked": {'postern_code_brake_refusals_total{instance="a"}': "0x25 1x9"},
    "PosternUntrustedForwarded": {'postern_untrusted_forwarded_total{instance="a"}': "0x25 1x9"},
    "PosternMissingAPIKey": {'postern_missing_api_key_total{instance="a"}': "0x25 1x9"},
}
#: Of these the missing series are the sign.
_BY_ABSENCE = ("PosternConfigurationUnknown", "PosternQueuesUnknown")
#: These compare with yesterday: a sample every five minutes for a day and an hour, else one a minute for half an hour.
_BY_YESTERDAY = ("PosternRefreshesRefused", "PosternWrongCodes")


def metrics_of(text):
    """The metrics that expressions name."""
    return {name if name in METRICS else _PARTS.sub("", name) for name in _METRIC.findall(text)}


def expressions():
    """Every query of the dashboard."""
    return [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", [])]


def promtool(*arguments):
    """Prometheus' own reader of rules."""
    if PROMTOOL is None:
        report.say("alert rules not run: promtool is not installed (Debian package prometheus)")
        pytest.skip("promtool is not installed")
    return subprocess.run([PROMTOOL, *map(str, arguments)], capture_output=True, text=True, timeout=120)


def test_every_metric_with_an_alarm_has_a_rule_and_no_rule_names_another():
    """Rows whose alarm is "none …" or "the same" need none of their own."""
    alarmed = {
        name for line in TABLE.splitlines() if line.startswith("| `postern_") and not line.split("|")[4].strip().startswith("none")
        for name in re.findall(r"`(postern_[a-z_]+)`", line.split("|")[1])
    }
    named = metrics_of(RULES.read_text(encoding="utf-8"))
    assert named <= METRICS, named - METRICS
    assert alarmed <= named, alarmed - named


def test_every_alert_says_what_to_do():
    """docs/operate.md has a row for it, and its alerts are those of the rules."""
    alerts = re.findall(r"^ +- alert: (\w+)$", RULES.read_text(encoding="utf-8"), re.MULTILINE)
    named = [name for line in section("Alerts").splitlines() if line.startswith("| `") for name in re.findall(r"`(Postern\w+)`", line.split("|")[1])]
    assert len(alerts) > 30 and sorted(named) == sorted(alerts), set(named) ^ set(alerts)


def test_the_dashboard_displays_every_metric():
    """And no other."""
    shown = metrics_of("\n".join(expressions()))
    assert shown == METRICS, shown ^ METRICS


def test_panels_have_ids_of_their_own_and_do_not_overlap():
    """As Grafana places them."""
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken = [(p["gridPos"]["y"], x) for p in panels for x in range(p["gridPos"]["x"], p["gridPos"]["x"] + p["gridPos"]["w"])]
    assert len(set(taken)) == len(taken) and all(x < 24 for _, x in taken)


def test_prometheus_reads_the_rules_and_the_queries_of_the_dashboard(tmp_path):
    """With Grafana's variables filled in."""
    done = promtool("check", "rules", RULES)
    assert done.returncode == 0, done.stdout + done.stderr
    filled = [text.replace("$__rate_interval", "5m").replace("$instance", ".*") for text in expressions()]
    rules = tmp_path / "queries.yml"
    rules.write_text(json.dumps({"groups": [{"name": "queries", "rules": [
        {"record": f"query:{number}", "expr": text} for number, text in enumerate(filled)]}]}))
    done = promtool("check", "rules", rules)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_rule_fires_for_what_it_is_for_and_none_for_a_quiet_server(tmp_path):
    """By Prometheus' own evaluation."""
    names = set(re.findall(r"- alert: (\w+)", RULES.read_text(encoding="utf-8")))
    assert names == set(FIRES), names ^ set(FIRES)
    shutil.copy(RULES, tmp_path / "rules.yml")
    cases = [("quiet", _WHOLE, [])]
    for name, series in FIRES.items():
        cases.append((name, series if name in _BY_ABSENCE else {**_WHOLE, **series}, [name]))
    query = 'count by (alertname) (ALERTS{alertstate="firing"%s})'
    tests = [
        {"interval": "5m" if name in _BY_YESTERDAY else "1m", "input_series": [{"series": key, "values": value} for key, value in series.items()],
         "promql_expr_test": [{
             "expr": query % (f',alertname="{expected[0]}"' if expected else ""), "eval_time": "1500m" if name in _BY_YESTERDAY else "30m",
             "exp_samples": [{"labels": f'{{alertname="{one}"}}', "value": 1} for one in expected]}]}
        for name, series, expected in cases]
    file = tmp_path / "tests.yml"
    file.write_text(json.dumps({"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": tests}))
    done = promtool("test", "rules", file)
    assert done.returncode == 0, done.stdout + done.stderr
