/// Who calls a statement, under which permission, from where and with which proof: `postern.caller`.
struct Caller {
    let realm: UUIDValue
    /// The client's row key.
    let client: UUIDValue?
    /// Checked again by the statement; `nil` where none is.
    var permission: String?
    /// Where the request came from, for audit.
    var source: String?
    /// At most 256 characters.
    var userAgent: String?
    /// The App on whose host the request came: its own switch counts.
    var app: String?
    /// The proof that came with the request.
    var proof: ProofUse?

    /// What every function takes that `postern.admit` begins.
    static let argument = Argument.row(
        "caller", ["realm", "client", "permission", "source", "user_agent", "app", ProofUse.argument])

    var arguments: Arguments {
        let caller: Arguments = [
            "realm": realm, "client": client, "permission": permission, "source": source, "user_agent": userAgent,
            "app": app,
        ]
        return caller + proof.arguments(in: realm)
    }
}
