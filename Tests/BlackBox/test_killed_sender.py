"""A server that is killed between the call to a provider and the record of it."""

import pytest

from harness.phones import Phones, new_number
from harness.wire import WireError

from test_channel_faults import Vendor

pytestmark = pytest.mark.slow


def test_a_message_whose_sender_is_killed_is_sent_once_more_with_the_same_id(fragile_world):
    """The provider has it, and no answer was read: the next process sends it again when the lease is over, and both copies' code signs in."""
    realm, number = fragile_world.realm("killed"), new_number()
    phones, vendor = Phones(realm), Vendor(9.0)
    try:
        fragile_world.admin.call("put_user", realm.slug, phone=number)
        fragile_world.admin.call("put_channel", realm.slug, "sms", "test", provider="webhook", url=vendor.url())
        fragile_world.settle()
        handle = Phones.ask(realm.app(), number).json()["AuthSession"]
        vendor.wait(1)
        fragile_world.node.kill()
        with pytest.raises((OSError, WireError)):
            realm.app().ask("somebody@example.com")
        fragile_world.time_travel(100)
        fragile_world.node.start()
        first, again = vendor.wait(2)
        assert (first["id"], first["to"], first["code"]) == (again["id"], number, again["code"])
        fragile_world.settle_messages()
        assert len(vendor.messages) == 2
        assert realm.app().redeem(first["code"], handle=handle).status == 200
    finally:
        phones.close()
        vendor.close()
