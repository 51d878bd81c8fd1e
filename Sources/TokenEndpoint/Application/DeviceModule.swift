import Grants
import Persistence

/// Trusted devices: added, adopted, listed, and used to sign in.
struct DeviceModule: Module {
    private let store: DeviceKeyStore
    private let shared: SharedParts

    init(_ shared: SharedParts) {
        self.shared = shared
        store = DeviceKeyStore(shared.database)
    }

    var grants: [any Grant] { [SignInGrant(DeviceFactor(devices: store), shared.signIn, issuer: shared.issuer)] }

    func routes(_ front: Front) -> [Route] {
        DeviceRoutes(
            devices: Devices(store: store, limiter: shared.limiter, keyring: shared.keyring, clock: shared.clock),
            authentication: shared.devices, bearer: shared.bearer
        ).routes
    }
}
