import Foundation

extension PosternClient {
    /// Signs in with a passkey.
    /// - Throws: ``PosternError/cancelled`` when the person closed the dialog.
    public func signIn(with dialog: any PasskeyDialog, style: PasskeyStyle = .dialog) async throws -> User {
        try await signIn(with: dialog, style: style, Demand())
    }

    func signIn(with dialog: any PasskeyDialog, style: PasskeyStyle, _ demand: Demand) async throws -> User {
        let (ceremony, assertion) = try await assertion(of: dialog, style)
        let form = [
            ("grant_type", GrantType.passkey), ("ceremony_id", ceremony), ("assertion", assertion), scopeField,
        ]
        // The server gives a lost answer again to who has the key.
        let repeats: Call.Repeats = configuration.key == .none ? .never : .whileLost
        let answer = try await token(form + demand.form, as: .other, repeats: repeats)
        return try await establish(answer, subject: demand.subject)
    }

    /// Asks for a passkey. After a move of domains the one of the former domain is asked for second.
    private func assertion(of dialog: any PasskeyDialog, _ style: PasskeyStyle) async throws -> (String, String) {
        var ceremony = try await beginPasskey(rpID: nil)
        let credential: Data
        do {
            credential = try await dialog.get(ceremony.options, style: style)
        } catch is DialogCancelled {
            guard let former = ceremony.formerRPID else { throw PosternError.cancelled }
            ceremony = try await beginPasskey(rpID: former)
            let options = ceremony.options
            credential = try await PosternError.ofDialog { try await dialog.get(options, style: style) }
        } catch {
            throw PosternError(ofDialog: error)
        }
        guard JSONValue(credential)?.object != nil, let text = String(data: credential, encoding: .utf8) else {
            throw PosternError.misuse("the passkey dialog must return AuthenticationResponseJSON")
        }
        return (ceremony.id, text)
    }

    private func beginPasskey(rpID: String?) async throws -> PasskeyCeremony {
        let form = rpID.map { [("rp_id", $0)] } ?? []
        return try await post("/connect/passkey/begin", form: form).item(PasskeyCeremony.init)
    }
}

/// A ceremony that the server began (WebAuthn Level 3 §7).
struct PasskeyCeremony {
    let id: String
    /// For the dialog.
    let options: Data
    /// The relying party of before a move of domains, if its passkeys still count.
    let formerRPID: String?

    init?(_ json: JSONValue?) {
        guard let id = json?["ceremonyId"]?.string, let options = json?["options"], options.object != nil else {
            return nil
        }
        self.id = id
        self.options = options.data
        formerRPID = json?["rpIds"]?.strings?.dropFirst().first
    }
}

extension PosternError {
    /// What the failure of a dialog or browser means, which may be the app's own.
    init(ofDialog error: any Error) {
        switch error {
        case let error as PosternError: self = error
        case is DialogCancelled, is CancellationError: self = .cancelled
        default:
            // Nothing of its text, which may hold anything.
            let error = error as NSError
            self = .refused(code: "dialog_failed", description: "\(error.domain) \(error.code)", status: 0)
        }
    }

    /// Runs a dialog. - Throws: ``PosternError``.
    static func ofDialog<Result: Sendable>(_ body: () async throws -> Result) async throws -> Result {
        do { return try await body() } catch { throw PosternError(ofDialog: error) }
    }
}
