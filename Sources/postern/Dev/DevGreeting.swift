import Foundation

/// What `postern dev` says once it serves.
struct DevGreeting: Sendable {
    let realm: DevRealm
    let secrets: DevRealm.Secrets
    let database: DevDatabase

    /// How this process was called, relative to the working directory if it is below it.
    private static var ownPath: String {
        let path = ProcessInfo.processInfo.arguments.first ?? "postern"
        let here = FileManager.default.currentDirectoryPath + "/"
        return path.hasPrefix(here) ? String(path.dropFirst(here.count)) : path
    }

    var text: String {
        let origin = realm.origin
        let secret = secrets.api
        let postern = Self.ownPath
        let app = "--url \(origin) --client \(DevRealm.clientID) --email \(DevRealm.email)"
        return """

            Open \(origin)/ in a browser: what there is, and what to try.

            Postern serves realm "demo" on \(origin)
              public client        \(DevRealm.clientID)
              confidential client  \(DevRealm.apiClientID), secret \(secret)
              web site             \(DevRealm.webClientID), secret \(secrets.web), \
            redirect http://localhost:8081/callback
              Cotter's wire        \(DevRealm.cotterClientID)  (API key; any port of http://localhost, yourapp://)
              Prove's calls        \(DevRealm.proveClientID), secret \(secrets.prove); numbers \(DevRealm.codeNumber) \
            (code \(DevRealm.code)), \(DevRealm.passNumber) (passes)
              demo app             \(DevRealm.spaClientID), on \(realm.appOrigin)/
              user                 \(DevRealm.email), \(DevRealm.phone)
              mails, messages      \(origin)/dev/outbox  (phones of AT, DE and US)
              passkeys             \(origin)/dev/passkey  (in a browser)
              administration       \(database.psql)
                                   (its manual: SELECT name, summary FROM admin.help;)
            and realm "garden" on \(realm.gardenOrigin), with client \(DevRealm.clientID) \
            and user \(DevRealm.gardenEmail).

            Try it in another terminal:

              curl -s \(origin)/api/account/native/otp/request -H 'Content-Type: application/json' \\
                -d '{"Email":"\(DevRealm.email)"}'; echo

              CODE=$(curl -s \(origin)/dev/outbox.json | grep -o '"code":"[0-9]*"' | head -1 | grep -o '[0-9]*')
              TOKENS=$(curl -s \(origin)/connect/token -d grant_type=urn:cocoar:otp -d client_id=\(DevRealm.clientID) \\
                -d username=\(DevRealm.email) -d otp_code=$CODE \
            --data-urlencode 'scope=openid offline_access profile email')
              echo "$TOKENS"
              ACCESS=$(echo "$TOKENS" | sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/')
              REFRESH=$(echo "$TOKENS" | sed 's/.*"refresh_token":"\\([^"]*\\)".*/\\1/')

              curl -s \(origin)/connect/userinfo -H "Authorization: Bearer $ACCESS"; echo
              curl -s \(origin)/connect/token -d grant_type=refresh_token \
            -d client_id=\(DevRealm.clientID) -d refresh_token=$REFRESH; echo
              curl -s \(origin)/connect/introspect -u \(DevRealm.apiClientID):\(secret) -d token=$ACCESS; echo
              curl -s -o /dev/null -w '%{http_code}\\n' \(origin)/connect/revoke \
            -d client_id=\(DevRealm.clientID) -d token=$ACCESS
              curl -s \(origin)/connect/introspect -u \(DevRealm.apiClientID):\(secret) -d token=$ACCESS; echo

            Or let a headless app do it, which prints every request and answer:

              postern=\(postern)
              $postern try otp \(app)
              $postern try magic \(app)
              $postern try passkey \(app)
              $postern try approval \(app)
              $postern try hosted \(app)
              $postern try possession --url \(origin) --client \(DevRealm.proveClientID) \\
                --secret-file .postern/\(DevRealm.proveClientID).secret --phone \(DevRealm.codeNumber) \
            --otp \(DevRealm.code)

            Ctrl-C stops everything; the data stays in \(database.place).

            """
    }
}
