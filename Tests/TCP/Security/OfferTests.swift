import NighTestKit
import Testing

/// Tests what a session offers to any client, as `openssl s_client` sees it. The table in docs/reference/security.md
/// says the same.
struct OfferTests {
    private static let rules = "-tls1_3 -alpn nigh/1"

    /// Arguments of `openssl`, and words that its output must contain or must not contain.
    private static let offers: [(arguments: String, words: String, isFound: Bool)] =
        [
            ("TLS_AES_128_GCM_SHA256", true), ("TLS_CHACHA20_POLY1305_SHA256", true),
            ("TLS_AES_256_GCM_SHA384", true), ("TLS_AES_128_CCM_SHA256", false),
            ("TLS_AES_128_CCM_8_SHA256", false),
        ].map { ("\(rules) -ciphersuites \($0)", "New, TLSv1.3, Cipher is \($0)", $1) }
        + [
            ("-groups X25519", true), ("-groups P-256", false), ("-groups P-384", false),
            ("-groups P-521", false), ("-groups X448", false), ("-groups ffdhe2048", false),
            ("-sigalgs ed25519", true), ("-sigalgs ed448", false), ("-sigalgs ecdsa_secp256r1_sha256", false),
            ("-sigalgs rsa_pss_rsae_sha256", false),
        ].map { ("\(rules) \($0)", "New, TLSv1.3", $1) }
        + ["-tls1", "-tls1_1", "-tls1_2"].map {
            ("\($0) -alpn nigh/1 -cipher ALL:@SECLEVEL=0", "Cipher is (NONE)", true)
        }

    @Test func `A session offers what the page on security says, and nothing else`() throws {
        let room = Room()
        let host = try room.join("Host")
        try ForeignClient.with(RawPeer.Credentials()) { files in
            func output(_ arguments: String) throws -> String {
                try ForeignClient(port: host.port, "\(arguments) \(files)", quiet: false).text
            }
            for (arguments, words, isFound) in Self.offers {
                let text = try output(arguments)
                #expect(text.contains(words) == isFound, "\(arguments): \(text)")
            }
            let text = try output(Self.rules)
            for words in [
                "ALPN protocol: nigh/1", "Compression: NONE", "Early data was not sent",
                "Server Temp Key: X25519", "peer signature type: ed25519",
                // It also asks clients for Ed25519 only.
                "requested signature algorithms: ed25519\n",
            ] {
                #expect(text.lowercased().contains(words.lowercased()), "\(words) is not in \(text)")
            }
        }
    }
}
