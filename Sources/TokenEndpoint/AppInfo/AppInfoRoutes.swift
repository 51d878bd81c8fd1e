import Encoding
import Grants
import HTTPTypes

/// `GET /api/app-info`: what an app needs to know about a host before it shows its first page.
struct AppInfoRoutes: Sendable {
    var routes: [Route] { [Route("/api/app-info", [.get: .anonymous { info($0) }]).cors(.clients)] }

    private func info(_ exchange: Exchange) -> Answer {
        let realm = exchange.realm
        var fields = JSONWriter(reserving: 128)
        // The address identifies the account, so it is always required.
        fields.member("Email", RegistrationFields.Rule.required.rawValue)
        fields.member("Username", RegistrationFields.Rule.off.rawValue)
        fields.member("Firstname", realm.registrationFields.firstName.rawValue)
        fields.member("Lastname", realm.registrationFields.lastName.rawValue)
        var object = JSONWriter()
        object.member("DisplayName", realm.app?.displayName ?? realm.displayName)
        object.member("RegistrationFields", json: fields.finish())
        object.member("NativeGrants", realm.nativeGrantsEnabled)
        object.member("Registration", realm.registration.rawValue)
        if let rpID = realm.advertisedRPID {
            object.member("RpId", rpID)
        } else {
            object.member("RpId", json: Array("null".utf8))
        }
        return .cacheable(object.finish(), seconds: 5, exchange)
    }
}
