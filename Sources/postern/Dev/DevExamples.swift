/// What the index page says that depends on the port alone.
extension DevFacts {
    /// - Parameters:
    ///   - realm: with the port.
    ///   - administration: the administrator's command.
    init(_ realm: DevRealm, administration: String) {
        let origin = realm.origin
        links = Links(
            index: "\(origin)/", outbox: "\(origin)/dev/outbox", passkey: "\(origin)/dev/passkey",
            demoApp: "\(realm.appOrigin)/", discovery: "\(origin)/.well-known/openid-configuration",
            modules: "\(origin)/sdk/v1/client.js")
        self.administration = administration
        let values = [
            "origin": origin, "email": DevRealm.email, "garden": realm.gardenOrigin,
            "gardenHost": "\(DevRealm.gardenHost):\(realm.port)", "port": "\(realm.port)",
        ]
        examples = [
            ("curl", "curl", "Asks for a code, reads it in the outbox, redeems it, asks who signed in."),
            (
                "swift", "Swift",
                "main.swift of a package that depends on clients/swift. It asks for the code of the outbox, once; then "
                    + "the session is kept. docs/quickstart.md has the package."
            ),
            (
                "web", "JavaScript",
                "A web page without a build. Open http://localhost:3000 and type the code of the outbox."
            ),
            ("python", "Python", "Without a package. It asks for the code of the outbox."),
            (
                "hosts", "Another realm",
                "The host chooses the realm. curl and browsers know that \(DevRealm.gardenHost) is this machine. "
                    + "Programs that ask the system for its address may not: they call 127.0.0.1 and send the host."
            ),
        ].map { file, name, hint in
            Example(
                name: name, hint: hint,
                text: DevTemplate("dev-example-\(file).txt").filled(values).trimmingSuffix("\n"))
        }
    }
}

extension String {
    fileprivate func trimmingSuffix(_ suffix: String) -> String {
        hasSuffix(suffix) ? String(dropLast(suffix.count)) : self
    }
}
