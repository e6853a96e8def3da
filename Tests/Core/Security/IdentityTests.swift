import Testing

@testable import NighCore

/// Decodes hexadecimal digits.
private func bytes(_ digits: String) -> [UInt8] {
    let values = digits.map { UInt8($0.hexDigitValue!) }
    return stride(from: 0, to: values.count, by: 2).map { values[$0] << 4 | values[$0 + 1] }
}

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
    func aSeedGivesTheKeyAndPeerIDOfTheStandards(seed: String, publicKey: String, peerID: String) throws {
        let secret = SecretBytes(count: 32)
        secret.withBytes { $0.copyBytes(from: bytes(seed)) }
        let identity = Identity(try KeyPair(seed: secret))
        #expect(identity.publicKey == bytes(publicKey))
        #expect(identity.peerID == PeerID(peerID))
        #expect(PeerID(publicKey: bytes(publicKey)) == identity.peerID)
    }

    @Test func aPeerIDNeedsAWholePublicKey() {
        #expect(PeerID(publicKey: [UInt8](repeating: 1, count: 31)) == nil)
        #expect(PeerID(publicKey: [UInt8](repeating: 1, count: 33)) == nil)
        #expect(PeerID(publicKey: [UInt8]()) == nil)
    }

    @Test func ephemeralIdentitiesAreUnique() {
        let peers = Set((0..<20).map { _ in Identity.ephemeral().peerID })
        #expect(peers.count == 20)
    }

    @Test func aSeededIdentityIsTheSameInEveryRun() {
        #expect(Identity.ephemeral(seed: 7) == Identity.ephemeral(seed: 7))
        #expect(Identity.ephemeral(seed: 7) != Identity.ephemeral(seed: 8))
        // Fixed, so that tests that print PeerIDs mean the same peers in the future.
        let known = Identity.ephemeral(seed: 1).peerID.description
        #expect(known == "ct6ox7n3gtk7sav6qwuepg6keydyxie3wympqtdmtaruxjodza7a")
    }

    @Test func printingAnIdentityDoesNotRevealTheKey() throws {
        let identity = Identity.ephemeral(seed: 1)
        var dumped = ""
        dump(identity, to: &dumped)
        let printed = ["\(identity)", String(reflecting: identity), dumped, "\(identity.keyPair)"]
        let pem = try identity.keyPair.pem().withBytes { String(decoding: $0, as: UTF8.self) }
        let secret = pem.split(separator: "\n")[1]
        for text in printed {
            #expect(!text.contains("PRIVATE"))
            #expect(!text.contains(secret))
        }
        #expect("\(identity)" == "identity of \(identity.peerID)")
    }

    @Test func thisDeviceHasAName() {
        let name = DisplayName.ofThisDevice()
        #expect(!name.description.isEmpty && !name.description.contains("."))
        #expect(DisplayName(exactly: name.description) == name)
    }
}
