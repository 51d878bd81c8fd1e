"""IPv6 sources are counted by /64 and by /48, which has sixteen times the permits."""

import pytest

from test_limits import assert_refused

LIMIT = 2


def calls(realm, app):
    """One limited call of each policy by source, from an address."""
    def by(path):
        return lambda source: app.post_json(path, {"Email": realm.new_email()}, {"X-Forwarded-For": source})
    return {
        "native-otp": by("/api/account/native/otp/request"),
        "magic-link": by("/api/account/magic-link/request"),
        "passkey-begin": lambda source: app.begin({"X-Forwarded-For": source}),
        "token": lambda source: app.token(
            {"grant_type": "refresh_token", **app.credentials(), "refresh_token": "x"}, {"X-Forwarded-For": source}),
        "refused": lambda source: app.get("/connect/userinfo", {"X-Forwarded-For": source}),
    }


@pytest.mark.parametrize("policy", ["native-otp", "magic-link", "passkey-begin", "token", "refused"])
def test_a_provider_prefix_is_one_source_with_sixteen_times_the_permits(world, proxied_node, policy):
    """A customer with a /48 has 65,536 /64s: together they get sixteen times what one gets."""
    realm = world.realm("tight")
    realm.limit(policy, "source", LIMIT, per="1 day")
    call = calls(realm, realm.app("app", proxied_node))[policy]
    first = call("2001:db8:1::1").status
    assert first != 429
    passed = 1
    for number in range(1, 40):
        for _ in range(LIMIT):
            passed += call(f"2001:db8:1:{number:x}::1").status != 429
    assert passed == 16 * LIMIT
    assert_refused(call("2001:db8:1:ffff::1"), policy, "source")
    assert call("2001:db8:2::1").status == first
    assert call("203.0.113.9").status == first


def test_one_subnet_has_its_own_budget(world, proxied_node):
    """The /64 as before; the rest of the /48 goes on."""
    realm = world.realm("tight")
    realm.limit("token", "source", LIMIT, per="1 day")
    call = calls(realm, realm.app("app", proxied_node))["token"]
    assert [call(f"2001:db8:1:1::{n}").status for n in range(1, LIMIT + 2)] == [400] * LIMIT + [429]
    assert call("2001:db8:1:2::1").status == 400


def test_ipv4_has_no_prefix(world, proxied_node):
    """Addresses of one /24 are not counted together, in either spelling."""
    realm = world.realm("tight")
    realm.limit("token", "source", 1, per="1 day")
    call = calls(realm, realm.app("app", proxied_node))["token"]
    assert [call(f"198.51.100.{n}").status for n in range(1, 40)] == [400] * 39
    assert [call(f"::ffff:198.51.101.{n}").status for n in range(1, 40)] == [400] * 39
