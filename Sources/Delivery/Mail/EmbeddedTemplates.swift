/// The templates of `Sources/Delivery/Templates`, by name without `.mustache`. The build puts the files into the binary.
enum EmbeddedTemplates {
    static let all: [String: String] = [
        "layout.html": PackageResources.layout_html_mustache,
        "otp.subject": PackageResources.otp_subject_mustache,
        "otp.text": PackageResources.otp_text_mustache,
        "otp.html": PackageResources.otp_html_mustache,
        "magic-link.subject": PackageResources.magic_link_subject_mustache,
        "magic-link.text": PackageResources.magic_link_text_mustache,
        "magic-link.html": PackageResources.magic_link_html_mustache,
        "passkey-added.subject": PackageResources.passkey_added_subject_mustache,
        "passkey-added.text": PackageResources.passkey_added_text_mustache,
        "passkey-added.html": PackageResources.passkey_added_html_mustache,
        "passkey-removed.subject": PackageResources.passkey_removed_subject_mustache,
        "passkey-removed.text": PackageResources.passkey_removed_text_mustache,
        "passkey-removed.html": PackageResources.passkey_removed_html_mustache,
    ].mapValues { String(decoding: $0, as: UTF8.self) }
}
