/// Who this side is: an Ed25519 key pair. Its public key makes the PeerID, its private key proves it on each link.
///
/// A program that should be the same peer at every start loads its identity from an ``IdentityFile``. One made by
/// ``ephemeral()`` is a new peer each time.
///
/// Copying is cheap and shares the key; the private key is overwritten in memory when the last copy goes. No member
/// and no description gives it away.
public struct Identity: Sendable {
    /// The public key: 32 bytes, as RFC 8032 writes it.
    public let publicKey: [UInt8]
    /// What everybody else knows this side by: the SHA-256 of the public key's SubjectPublicKeyInfo in DER.
    public let peerID: PeerID

    /// The pair itself, for the secure channel to sign with.
    let keyPair: KeyPair

    init(_ keyPair: KeyPair) {
        guard let peerID = keyPair.withPointer(PeerID.init(key:)) else {
            preconditionFailure("an Ed25519 key that libcrypto cannot encode")
        }
        self.keyPair = keyPair
        self.peerID = peerID
        publicKey = keyPair.publicKey
    }

    /// A new identity that is kept nowhere: for one run, for a guest, for tests.
    ///
    /// Stops the program on a machine whose libcrypto has no Ed25519.
    public static func ephemeral() -> Identity {
        do {
            return Identity(try KeyPair.random())
        } catch {
            fatalError("\(error)")
        }
    }

    /// The public key as other programs read it, such as `openssl pkey -pubin`: SubjectPublicKeyInfo in PEM. The SHA-256 of its DER
    /// is the PeerID. Fails where libcrypto does.
    public func publicKeyPEM() throws(NighError) -> String { try keyPair.publicPEM() }

    /// The identity that `seed` stands for, the same on every machine and in every run.
    ///
    /// **Insecure, for tests only**: whoever guesses the 64 bits of `seed` has the private key.
    public static func ephemeral(seed: UInt64) -> Identity {
        let secret = SecretBytes(count: KeyPair.seedByteCount)
        secret.withBytes { bytes in
            var generator = SeededGenerator(seed: seed)
            for offset in stride(from: 0, to: bytes.count, by: 8) {
                bytes.storeBytes(of: generator.next().littleEndian, toByteOffset: offset, as: UInt64.self)
            }
        }
        do {
            return Identity(try KeyPair(seed: secret))
        } catch {
            fatalError("\(error)")
        }
    }
}

extension Identity: Equatable {
    /// Whether both are the same key pair.
    public static func == (left: Identity, right: Identity) -> Bool { left.publicKey == right.publicKey }
}

extension Identity: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Names the PeerID, never the key.
    public var description: String { "identity of \(peerID)" }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// Shows debuggers and `dump` the PeerID, never the key.
    public var customMirror: Mirror { Mirror(self, children: ["peerID": peerID]) }
}
