import Persistence

// What a statement says that was refused a permit is no outcome: the verdict about the permits tells.

extension SignInOutcome {
    var unlessLimited: SignInOutcome? { if case .limited = self { nil } else { self } }
}

extension SessionStore.RotationOutcome {
    var unlessLimited: SessionStore.RotationOutcome? { if case .limited = self { nil } else { self } }
}

extension ServiceAccountStore.Outcome {
    var unlessLimited: ServiceAccountStore.Outcome? { if case .limited = self { nil } else { self } }
}

extension PasskeyStore.AssertionStart {
    var unlessLimited: PasskeyStore.AssertionStart? { if case .limited = self { nil } else { self } }
}

extension MagicLinkStore.Page {
    var unlessLimited: MagicLinkStore.Page? { if case .limited = self { nil } else { self } }
}

extension MagicLinkStore.Confirmation {
    var unlessLimited: MagicLinkStore.Confirmation? { self == .limited ? nil : self }
}
