#if !canImport(CryptoKit)
    import CLibCrypto
    import Foundation

    /// ECDSA over P-256 (FIPS 186-5) with libcrypto.
    enum P256 {
        /// The public point of a secret number: x and y, 32 bytes each; `nil` unless it is 32 bytes, above zero and below
        /// the order of the curve.
        static func point(of secret: Data) -> Data? {
            guard secret.count == 32, let group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1) else { return nil }
            defer { EC_GROUP_free(group) }
            guard let number = number(secret) else { return nil }
            defer { BN_clear_free(number) }
            guard BN_is_zero(number) == 0, let order = EC_GROUP_get0_order(group), BN_cmp(number, order) < 0,
                let point = EC_POINT_new(group)
            else { return nil }
            defer { EC_POINT_free(point) }
            guard EC_POINT_mul(group, point, number, nil, nil, nil) == 1 else { return nil }
            var bytes = [UInt8](repeating: 0, count: 65)
            let count = EC_POINT_point2oct(group, point, POINT_CONVERSION_UNCOMPRESSED, &bytes, bytes.count, nil)
            return count == 65 ? Data(bytes[1...]) : nil
        }

        /// The signature of SHA-256 of a message: r and s, 32 bytes each.
        static func sign(_ message: Data, with secret: Data, _ point: Data) -> Data? {
            guard let key = key(secret, point) else { return nil }
            defer { EVP_PKEY_free(key) }
            guard let context = EVP_MD_CTX_new() else { return nil }
            defer { EVP_MD_CTX_free(context) }
            guard EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key) == 1 else { return nil }
            var der = [UInt8](repeating: 0, count: 80)
            var count = der.count
            let signed = message.withUnsafeBytes { bytes in
                EVP_DigestSign(context, &der, &count, bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count)
            }
            return signed == 1 ? fixed(der, count) : nil
        }

        private static func number(_ bytes: Data) -> OpaquePointer? {
            bytes.withUnsafeBytes { BN_bin2bn($0.bindMemory(to: UInt8.self).baseAddress, Int32($0.count), nil) }
        }

        /// From PKCS #8 (RFC 5208, RFC 5915): all such documents of P-256 begin alike.
        private static func key(_ secret: Data, _ point: Data) -> OpaquePointer? {
            let document: [UInt8] =
                [
                    0x30, 0x81, 0x87, 0x02, 0x01, 0x00, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02,
                    0x01, 0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07, 0x04, 0x6D, 0x30, 0x6B, 0x02,
                    0x01, 0x01, 0x04, 0x20,
                ] + Array(secret) + [0xA1, 0x44, 0x03, 0x42, 0x00, 0x04] + Array(point)
            return document.withUnsafeBufferPointer { bytes in
                var next = bytes.baseAddress
                return d2i_AutoPrivateKey(nil, &next, bytes.count)
            }
        }

        /// r and s of a DER signature (RFC 3279 §2.2.3).
        private static func fixed(_ der: [UInt8], _ count: Int) -> Data? {
            let signature = der.withUnsafeBufferPointer { bytes in
                var next = bytes.baseAddress
                return d2i_ECDSA_SIG(nil, &next, count)
            }
            guard let signature else { return nil }
            defer { ECDSA_SIG_free(signature) }
            var raw = [UInt8](repeating: 0, count: 64)
            let written = raw.withUnsafeMutableBufferPointer { bytes in
                guard let r = bytes.baseAddress else { return false }
                return BN_bn2binpad(ECDSA_SIG_get0_r(signature), r, 32) == 32
                    && BN_bn2binpad(ECDSA_SIG_get0_s(signature), r + 32, 32) == 32
            }
            return written ? Data(raw) : nil
        }
    }
#endif
