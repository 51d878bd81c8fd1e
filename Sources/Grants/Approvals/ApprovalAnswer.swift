import Encoding
import Persistence

/// An answer as a trusted device signs it: a JWS over every value that the device showed.
struct ApprovalAnswer {
    private static let decisions: Set<String> = ["approve", "deny", "report"]

    /// For the statement, which compares it with what was shown.
    let signed: ApprovalStore.Answer

    /// `nil` for anything but a JWS by the key in its header over an answer to this request at this realm. Whether the
    /// key is a trusted device's only the database knows.
    init?(_ text: String, to approval: UUIDValue, realm: Realm) {
        guard let statement = SelfSignedJWS(text), statement.type == "postern-approval+jwt" else { return nil }
        let claims = statement.claims
        guard claims.text("aud") == realm.issuer, claims.date("iat") != nil,
            claims.text("approval_id") == approval.description,
            let challenge = claims.text("challenge").flatMap({ Base64.urlDecode($0[...]) }), challenge.count == 32,
            let decision = claims.text("decision"), Self.decisions.contains(decision),
            let clientID = claims.text("client_id"), let event = claims.text("event"),
            claims.has("binding_message") == (claims.text("binding_message") != nil),
            ![clientID, event, claims.text("binding_message") ?? "", claims.text("match_number") ?? ""]
                .contains(where: { $0.utf8.contains(0) })
        else { return nil }
        signed = ApprovalStore.Answer(
            approval: approval, thumbprint: statement.thumbprint, decision: decision, clientID: clientID, event: event,
            bindingMessage: claims.text("binding_message"), challenge: challenge,
            matchNumber: claims.text("match_number"))
    }
}
