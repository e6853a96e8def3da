import NighTestKit
import NighUV
import Testing

@testable import NighTCP

/// Tests what a session offers to any client, as seen by `openssl`. The table in docs/reference/security.md says the
/// same.
@Suite struct OfferTests {
    private static let rules = "-tls1_3 -alpn nigh/1"

    /// The output of `openssl s_client` about a handshake with these arguments.
    private func probe(_ arguments: String) throws -> String {
        let room = Room()
        let host = try room.join("Host")
        return try ForeignClient.with(RawPeer.Credentials()) { files in
            try ForeignClient(port: host.port, "\(arguments) \(files)", quiet: false).text
        }
    }

    @Test(arguments: [
        ("TLS_AES_128_GCM_SHA256", true), ("TLS_CHACHA20_POLY1305_SHA256", true),
        ("TLS_AES_256_GCM_SHA384", true), ("TLS_AES_128_CCM_SHA256", false),
        ("TLS_AES_128_CCM_8_SHA256", false),
    ])
    func ciphers(name: String, isOffered: Bool) throws {
        let text = try probe("\(Self.rules) -ciphersuites \(name)")
        #expect(text.contains("New, TLSv1.3, Cipher is \(name)") == isOffered, "\(text)")
    }

    @Test(arguments: [
        ("X25519", true), ("P-256", false), ("P-384", false), ("P-521", false), ("X448", false),
        ("ffdhe2048", false),
    ])
    func groups(name: String, isOffered: Bool) throws {
        let text = try probe("\(Self.rules) -groups \(name)")
        #expect(text.contains("New, TLSv1.3") == isOffered, "\(text)")
    }

    @Test(arguments: [
        ("ed25519", true), ("ed448", false), ("ecdsa_secp256r1_sha256", false),
        ("rsa_pss_rsae_sha256", false),
    ])
    func signatures(name: String, isOffered: Bool) throws {
        let text = try probe("\(Self.rules) -sigalgs \(name)")
        #expect(text.contains("New, TLSv1.3") == isOffered, "\(text)")
        // It also asks clients for Ed25519 only.
        if isOffered {
            #expect(text.lowercased().contains("requested signature algorithms: ed25519\n"), "\(text)")
        }
    }

    @Test(arguments: ["-tls1", "-tls1_1", "-tls1_2"])
    func versions(argument: String) throws {
        let text = try probe("\(argument) -alpn nigh/1 -cipher ALL:@SECLEVEL=0")
        #expect(text.contains("Cipher is (NONE)"), "\(text)")
    }

    @Test func otherParametersMatchTheRules() throws {
        let text = try probe(Self.rules)
        #expect(text.contains("ALPN protocol: nigh/1"), "\(text)")
        #expect(text.contains("Compression: NONE"))
        #expect(text.contains("Early data was not sent"))
        #expect(text.contains("Server Temp Key: X25519"))
        #expect(text.lowercased().contains("peer signature type: ed25519"))
    }
}
