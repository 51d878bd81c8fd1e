"""What deploy/ ships: the systemd unit and HAProxy before two processes."""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
import yaml

from harness import report, wire
from harness.haproxy import HAPROXY, HAProxy
from harness.settings import BINARY, CLIENTS, REPOSITORY
from harness.tls import over_tls

UNIT = REPOSITORY / "deploy" / "systemd" / "postern.service"
KUBERNETES = REPOSITORY / "deploy" / "kubernetes"
DISCOVERY = "/.well-known/openid-configuration"


# -- systemd ---------------------------------------------------------------------------------------------


def test_the_unit_leaves_little_exposed():
    """`systemd-analyze security` gives at most 2.0 of 10."""
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=20", str(UNIT)], capture_output=True, text=True, check=False)
    exposure = re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)
    assert exposure and float(exposure[1]) <= 2.0 and done.returncode == 0, done.stdout[-600:] + done.stderr
    report.say(f"systemd unit: exposure {exposure[1]} of 10")


def allowed_calls():
    """The system calls that the unit's filter lets through."""
    sets = {}
    name = None
    for line in subprocess.run(["systemd-analyze", "syscall-filter"], capture_output=True, text=True, check=True).stdout.splitlines():
        if line.startswith("@"):
            name = line.strip()
            sets[name] = []
        elif name and line.strip() and not line.strip().startswith("#"):
            sets[name].append(line.strip())

    def members(group):
        return {call for item in sets[group] for call in (members(item) if item.startswith("@") else {item})}

    allowed = set()
    for line in re.findall(r"^SystemCallFilter=(.+)$", UNIT.read_text(encoding="utf-8"), re.MULTILINE):
        for group in line.removeprefix("~").split():
            allowed = allowed - members(group) if line.startswith("~") else allowed | members(group)
    # systemd itself needs these to start the process, and adds them.
    return allowed | members("@default") | {"execve", "exit", "exit_group", "rt_sigreturn", "sigreturn"}


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_a_process_makes_no_system_call_that_the_unit_forbids(world, tmp_path):
    """Sign-in by mail, refresh, reload of the configuration, drain."""
    trace = tmp_path / "trace"
    node = world.start_node(wrapper=("strace", "-f", "-qq", "-e", "signal=none", "-o", str(trace)))
    try:
        realm = world.realm("traced")
        app = realm.app()
        app.node = node
        tokens = app.sign_in(realm.user())
        assert app.refresh(tokens["refresh_token"]).status == 200
        (server,) = Path(f"/proc/{node.process.pid}/task/{node.process.pid}/children").read_text(encoding="ascii").split()
        os.kill(int(server), signal.SIGTERM)
        assert node.process.wait(20) == 0
    finally:
        node.stop()
    used = set(re.findall(r"^\d+ +([a-z0-9_]+)\(", trace.read_text(errors="replace"), re.MULTILINE))
    assert {"epoll_wait", "sendmsg", "openat"} & used, "nothing was traced"
    assert used <= allowed_calls(), used - allowed_calls()
    report.say(f"systemd unit: {len(used)} system calls, all allowed")


# -- image, manifests ------------------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a file system of its own")
def test_the_files_of_the_image_serve_read_only_as_their_user(world, tmp_path):
    """Nothing is missing, nothing is written, and there is no shell."""
    root = tmp_path / "root"
    subprocess.run(
        [REPOSITORY / "scripts" / "build-image", "--folder", root], env={**os.environ, "POSTERN_BIN": str(BINARY)}, capture_output=True, check=True)
    assert [path.name for path in (root / "usr" / "bin").iterdir()] == ["postern"]
    key = root / "etc" / "postern" / "secret.key"
    shutil.copyfile(world.key_file, key)
    key.chmod(0o440)
    os.chown(key, 0, 10001)
    for folder in ("proc", "database"):
        (root / folder).mkdir()
    wrapper = ("unshare", "-m", "sh", "-ec",
               f'mount --bind "{root}" "{root}"; mount -o remount,ro,bind "{root}"; mount -t proc proc "{root}/proc";'
               f' mount --bind "{world.cluster.root}" "{root}/database"; exec chroot --userspec=10001:10001 "{root}" /usr/bin/postern serve', "sh")
    node = world.start_node(
        wrapper=wrapper, POSTERN_SECRET_KEY_FILE="/etc/postern/secret.key",
        POSTERN_DATABASE_URL=world.cluster.url("bb_serve").replace(str(world.cluster.root).replace("/", "%2F"), "%2Fdatabase"))
    try:
        realm = world.realm("image")
        app = realm.app()
        app.node = node
        assert "refresh_token" in app.sign_in(realm.user())
        assert node.terminate() == 0
    finally:
        node.stop()


@pytest.mark.skipif(not (CLIENTS / "kubernetes_validate").exists(), reason="no kubernetes-validate")
@pytest.mark.parametrize("file, member", [
    ("postern.yaml", "replicas: 2"), ("network.yaml", "policyTypes:"), ("ingress.yaml", "ingressClassName:"),
    ("migrate/migrate.yaml", "backoffLimit: 0")])
def test_the_manifests_are_valid(tmp_path, file, member):
    """Against the schemas of Kubernetes; strictly: an unknown member is an error."""
    manifests = KUBERNETES / file
    wrong = tmp_path / "wrong.yaml"
    assert member in manifests.read_text(encoding="utf-8")
    wrong.write_text(manifests.read_text(encoding="utf-8").replace(member, "un" + member), encoding="utf-8")

    def validate(path):
        return subprocess.run(
            ["/usr/bin/python3", "-m", "kubernetes_validate", "--strict", "-k", "1.31", path],
            env={**os.environ, "PYTHONPATH": str(CLIENTS)}, capture_output=True, text=True, check=False)

    assert validate(manifests).returncode == 0, validate(manifests)
    assert validate(wrong).returncode != 0


@pytest.mark.parametrize("file", [
    "container/compose.yaml", "container/compose.dev.yaml", "kubernetes/postern.yaml", "kubernetes/secret.env.example",
    "kubernetes/migrate/kustomization.yaml"])
def test_every_setting_in_a_manifest_is_one_of_the_servers(file):
    """A misspelled one would be ignored."""
    named = set(re.findall(r"POSTERN_[A-Z_]+[A-Z]", (REPOSITORY / "deploy" / file).read_text(encoding="utf-8"))) - {"POSTERN_USER"}
    known = set(re.findall(r"`(POSTERN_[A-Z_]+[A-Z])`", (REPOSITORY / "docs" / "operate.md").read_text(encoding="utf-8")))
    assert (named or file.endswith("dev.yaml")) and named <= known, named - known


def documents(file):
    """The documents of a manifest by kind and name."""
    made = yaml.safe_load_all((KUBERNETES / file).read_text(encoding="utf-8"))
    return {(document["kind"], document["metadata"]["name"]): document for document in made}


@pytest.mark.parametrize("folder", [".", "migrate"])
def test_a_kustomization_names_its_files_its_image_and_the_secret_of_its_pods(folder):
    """By digest, so that a tag that moves changes nothing. What is secret is not in the repository."""
    made = yaml.safe_load((KUBERNETES / folder / "kustomization.yaml").read_text(encoding="utf-8"))
    texts = [(KUBERNETES / folder / name).read_text(encoding="utf-8") for name in made["resources"]]
    (image,), (secret,) = made["images"], made["secretGenerator"]
    assert image["digest"].startswith("sha256:")
    used = [name for text in texts for name in re.findall(r"^ *image: (\S+)$", text, re.M)]
    assert used == [image["name"]]
    assert re.search(rf"secretName: {secret['name']}\b|secretRef: {{name: {secret['name']}}}", "".join(texts))
    ignored = (REPOSITORY / ".gitignore").read_text(encoding="utf-8")
    for entry in secret.get("files", []) + secret.get("envs", []):
        name = entry.rsplit("=", 1)[-1]
        assert not (KUBERNETES / folder / name).exists() and name in ignored, name


def test_the_monitoring_finds_the_port_of_the_operators_and_the_ingress_does_not():
    """Two Services; the ingress knows the one for clients."""
    services = {name: document for (kind, name), document in documents("postern.yaml").items() if kind == "Service"}
    monitor = documents("monitor.yaml")["ServiceMonitor", "postern"]["spec"]
    chosen, = (service for service in services.values() if monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items())
    assert [port["name"] for port in chosen["spec"]["ports"]] == [monitor["endpoints"][0]["port"]] == ["operations"]
    rule, = documents("ingress.yaml")["Ingress", "postern"]["spec"]["rules"]
    backend = rule["http"]["paths"][0]["backend"]["service"]
    assert [port["name"] for port in services[backend["name"]]["spec"]["ports"]] == [backend["port"]["name"]] == ["http"]


def test_a_pod_has_time_to_stop():
    """The delay and the grace end before it is killed, and the delay is longer than a proxy's look every two seconds."""
    text = (KUBERNETES / "postern.yaml").read_text(encoding="utf-8")
    delay, grace = (int(re.search(rf'{name}, value: "(\d+)"', text)[1]) for name in ("POSTERN_SHUTDOWN_DELAY", "POSTERN_SHUTDOWN_GRACE"))
    assert 2 < delay and delay + grace < int(re.search(r"terminationGracePeriodSeconds: (\d+)", text)[1])


# -- HAProxy ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def nodes(world):
    """Two processes that trust the proxy."""
    made = [world.start_node(POSTERN_TRUSTED_PROXIES="127.0.0.1/32") for _ in range(2)]
    yield made
    for node in made:
        node.stop()


@pytest.fixture(scope="module")
def proxy(nodes):
    """HAProxy before them."""
    if HAPROXY is None:
        pytest.skip("HAProxy is not installed")
    made = HAProxy(*nodes)
    yield made
    made.close()


def test_the_proxy_serves_the_realm_by_host_and_overwrites_what_clients_forward(world, realm, proxy):
    """Over TLS; plain HTTP is sent there; and HTTP/2 is spoken."""
    other = world.realm("other")
    answer = over_tls(proxy.tls, "GET", DISCOVERY, [("Host", realm.host), ("X-Forwarded-Host", other.host)])
    assert answer.startswith(b"HTTP/1.1 200") and realm.issuer.encode() in answer
    moved = wire.exchange(proxy.plain, "GET", DISCOVERY, {"Host": realm.host})
    assert moved.status == 301 and moved.header("location") == f"https://{realm.host}{DISCOVERY}"
    done = subprocess.run(
        ["curl", "-sk", "--http2", "-o", "/dev/null", "-w", "%{http_version} %{http_code}", "--connect-to", f"{realm.host}:443:127.0.0.1:{proxy.tls}",
         f"https://{realm.host}{DISCOVERY}"], capture_output=True, text=True, check=True)
    assert done.stdout == "2 200"


def test_behind_the_proxy_limits_count_the_client(world, proxy):
    """Whatever addresses it claims."""
    realm = world.realm("proxied")
    realm.limit("native-otp", "source", 3)
    body = wire.json.dumps({"Email": realm.new_email()}).encode()
    statuses = []
    for number in range(4):
        fields = [("Host", realm.host), ("Content-Type", "application/json"), ("X-Forwarded-For", f"198.51.100.{number}")]
        statuses.append(over_tls(proxy.tls, "POST", "/api/account/native/otp/request", fields, body)[:12])
    assert statuses == [b"HTTP/1.1 200"] * 3 + [b"HTTP/1.1 429"]


def test_only_the_ingress_and_the_monitoring_reach_a_pod():
    """Everything else is kept out."""
    policy = documents("network.yaml")["NetworkPolicy", "postern"]["spec"]
    assert policy["policyTypes"] == ["Ingress"] and len(policy["ingress"]) == 2
    assert [[port["port"] for port in rule["ports"]] for rule in policy["ingress"]] == [["http"], ["operations"]]
    assert all(rule["from"] for rule in policy["ingress"])


def test_the_packages_of_a_build_are_those_of_the_list():
    """Those that packages pull in, too. Without a build there is nothing to compare."""
    if not (REPOSITORY / "Package.resolved").exists():
        pytest.skip("nothing was resolved here")
    done = subprocess.run([REPOSITORY / "scripts" / "pins", "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_binary_looks_functions_up_at_its_start():
    """Their addresses are read-only afterwards (BIND_NOW)."""
    flags = subprocess.run(["readelf", "-d", BINARY], capture_output=True, text=True, check=True).stdout
    assert "BIND_NOW" in flags or re.search(r"FLAGS_1\).*NOW", flags), flags
