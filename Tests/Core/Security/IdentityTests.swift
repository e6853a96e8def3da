import Glibc
import Testing

@testable import NighCore

@Suite struct IdentityTests {
    /// The seeds and public keys are those of RFC 8032, section 7.1. The `openssl` and `base32` commands computed the
    /// PeerIDs.
    @Test(arguments: [
        (
            seed: "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
            publicKey: "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            peerID: "a3r73d62fg5wbk2zkv66mhw3blwnwiyrgs7dbz23ivpy4g3zf6uq"
        ),
        (
            seed: "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
            publicKey: "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
            peerID: "32zn5u45yjx44dtaqw3pynf7nnmudej3x7rouykbcph7tyaeyfya"
        ),
        (
            seed: "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
            publicKey: "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
            peerID: "ru43uufl4uhxpnv3rlt3net27577x25dlljig7aokhucxs6mmdkq"
        ),
    ])
    func `A seed gives the key and PeerID of the standards`(seed: String, publicKey: String, peerID: String)
        throws
    {
        let identity = Identity(try KeyPair(seed: SecretBytes(copying: .init(hexadecimal: seed))))
        #expect(identity.publicKey == .init(hexadecimal: publicKey))
        #expect(identity.peerID == PeerID(peerID))
        #expect(PeerID(publicKey: identity.publicKey) == identity.peerID)
    }

    @Test func `A PeerID needs a whole public key`() {
        for count in [0, 31, 33] {
            #expect(PeerID(publicKey: [UInt8](repeating: 1, count: count)) == nil)
        }
    }

    @Test func `A seeded identity is the same in every run`() {
        #expect(Identity.ephemeral(seed: 7) == Identity.ephemeral(seed: 7))
        #expect(Identity.ephemeral(seed: 7) != Identity.ephemeral(seed: 8))
        #expect(Set((0..<20).map { _ in Identity.ephemeral().peerID }).count == 20)
        // Fixed, so that tests that print PeerIDs mean the same peers in the future.
        let known = Identity.ephemeral(seed: 1).peerID.description
        #expect(known == "ct6ox7n3gtk7sav6qwuepg6keydyxie3wympqtdmtaruxjodza7a")
    }

    @Test func `Printing an identity does not reveal the key`() throws {
        let identity = Identity.ephemeral(seed: 1)
        var dumped = ""
        dump(identity, to: &dumped)
        let pem = try identity.keyPair.pem().withBytes { String(decoding: $0, as: UTF8.self) }
        let secret = pem.split(separator: "\n")[1]
        for text in ["\(identity)", String(reflecting: identity), dumped, "\(identity.keyPair)"] {
            #expect(!text.contains("PRIVATE") && !text.contains(secret))
        }
    }

    @Test func `Sessions can use their keys while the program exits`() async {
        await #expect(processExitsWith: .success) {
            // Called after everything that libcrypto registers from here on, as the last of what `exit` does.
            atexit {
                let identity = Identity.ephemeral()
                let hash = [UInt8]("text".utf8).withUnsafeBytes { SHA256.hash($0) }
                let works = (try? TLSContext(identity)) != nil && hash.count == SHA256.byteCount
                _exit(works ? EXIT_SUCCESS : EXIT_FAILURE)
            }
            _ = Identity.ephemeral()
            exit(EXIT_SUCCESS)
        }
    }
}
