/// The Ed25519 key pair behind a PeerID. The public key determines the PeerID; the private key proves it on each link.
///
/// A program that should be the same peer at every start loads its identity from an `IdentityFile`. An identity from
/// ``ephemeral()`` is a new peer each time, unless `IdentityFile` stores it.
///
/// Copies are cheap and share the key. The private key is overwritten in memory when the last copy is destroyed. No
/// member and no description reveals it.
public struct Identity: Sendable {
    /// The public key: 32 bytes, in the form of RFC 8032.
    public let publicKey: [UInt8]
    /// The PeerID that belongs to the key: the SHA-256 of the public key's SubjectPublicKeyInfo in DER.
    public let peerID: PeerID

    /// The PeerID of the identity that the key acts for: its own, unless it is a delegate; see ``makeDelegate()``.
    public internal(set) var principal: PeerID

    /// The key pair, with which the secure channel signs.
    package let keyPair: KeyPair
    /// The key pair of the principal, if this is a delegate.
    var principalKey: KeyPair?

    package init(_ keyPair: KeyPair) {
        guard let peerID = keyPair.withPointer(PeerID.init(key:)) else {
            preconditionFailure("an Ed25519 key that libcrypto cannot encode")
        }
        self.keyPair = keyPair
        self.peerID = peerID
        principal = peerID
        publicKey = keyPair.publicKey
    }

    /// Creates a new identity that is not stored: for a single run, for a guest, for tests.
    ///
    /// Stops the program if libcrypto on this machine has no Ed25519.
    public static func ephemeral() -> Identity {
        do {
            return Identity(try KeyPair.random())
        } catch {
            fatalError("\(error)")
        }
    }

    /// Returns the public key in the form that other programs read, such as `openssl pkey -pubin`: SubjectPublicKeyInfo
    /// in PEM. The SHA-256 of its DER form is the PeerID. Fails if libcrypto fails.
    public func publicKeyPEM() throws(NighError) -> String { try keyPair.publicPEM() }

    /// Creates the identity that belongs to `seed`: the same on every machine and in every run.
    ///
    /// **Insecure, for tests only**: anybody who guesses the 64 bits of `seed` has the private key.
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
    /// Returns whether both are the same key pair and act for the same identity.
    public static func == (left: Identity, right: Identity) -> Bool {
        left.publicKey == right.publicKey && left.principal == right.principal
    }
}

extension Identity: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// A text with the PeerID, never with the key.
    public var description: String {
        isDelegate ? "identity of \(peerID), which acts for \(principal)" : "identity of \(peerID)"
    }

    /// The text of ``description``.
    public var debugDescription: String { description }

    /// A mirror that shows debuggers and `dump` the PeerID, never the key.
    public var customMirror: Mirror { Mirror(self, children: ["peerID": peerID]) }
}
