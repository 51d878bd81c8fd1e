#!/usr/bin/env bash
# Administrators are told when an algorithm that they ask for begins to sign.
# Uses the database in PGDATABASE.
set -euo pipefail
failures=0
said() { PGOPTIONS='' psql -XAtq -v ON_ERROR_STOP=1 -c "BEGIN" -c "$1" -c "ROLLBACK" 2>&1 >/dev/null; }
check() { # what pattern got
    if [[ "$3" =~ $2 ]]; then echo "ok - $1"; else echo "not ok - $1: $3"; failures=$((failures + 1)); fi
}
make="SELECT admin.put_realm('when', 'when.example'), admin.put_client('when', 'app', signing_alg => 'EdDSA')"
check "of a client" 'NOTICE:  EdDSA signs for client_id "app" from about [0-9]{2}:[0-9]{2} UTC on, and until then' "$(said "$make")"
check "with what to do" 'HINT: .*postern keys rotate' "$(said "$make")"
key="INSERT INTO postern.signing_key (realm_id, kid, alg, public_jwk, sealed_private, activates_at)
     SELECT id, 'k', 'EdDSA', '{}', '', now() FROM postern.realm WHERE slug = 'when'"
check "and not when it signs already" '^$' \
    "$(said "SET client_min_messages = error; $make; $key; SET client_min_messages = notice; SELECT admin.put_client('when', 'app', signing_alg => 'EdDSA')")"
check "of a rotation" 'NOTICE:  ES256 signs for the realm from about' "$(said "$make; SELECT admin.rotate_signing_key('when', 'ES256')")"
exit $((failures > 0))
