import COpenSSL

/// Makes sure that nobody is between two peers on one TLS connection: both show the same six digits, two people compare them,
/// as in Bluetooth's numeric comparison.
///
/// A value without I/O and without a clock, for one connection and one attempt. The session gives it what comes and sends
/// what it says; it sets the time limit, and asks its program before it lets an exchange begin. `docs/PROTOCOL.md` has
/// the messages and why a man in the middle has one try in a million.
///
/// ```
/// asking   begin → commitment ──▶                              reveal ──▶  confirm → confirmed ──▶
/// asked                         receive → nonce ──▶  ◀ receive            receive → the code
/// ```
package struct PairingExchange {
    package enum Role {
        /// Wants to be paired, and began.
        case asking
        /// Was asked.
        case asked
    }

    /// What is to be done after a message or a confirmation.
    package enum Step: Equatable {
        case nothing
        case send(PairingMessage)
        /// Show the digits to the person; send the message, if there is one, first.
        case showCode(PairingCode, send: PairingMessage?)
        /// The other side's person has confirmed, this side's not yet.
        case otherConfirmed
        /// The peers are paired; send the message, if there is one, first.
        case bothConfirmed(send: PairingMessage?)
        /// The other side does not go on.
        case refused(PairingRefusal)
    }

    /// What the other side did that no honest one does. The link must be ended.
    package enum Violation: Error, Hashable {
        /// A message that does not belong there.
        case outOfOrder(message: String, phase: String)
        /// The asking side revealed another nonce than it had committed to: it wanted to choose the digits.
        case brokenCommitment

        package var words: String {
            switch self {
            case .outOfOrder(let message, let phase): "the pairing message \"\(message)\" \(phase)"
            case .brokenCommitment: "the revealed pairing nonce is not the one that was committed to"
            }
        }

        var asCause: NighError.Cause { .protocolViolation(words) }
    }

    /// The label of the TLS exporter that makes the keying material, and how much of it. There is no context.
    static let exporterLabel = "EXPORTER-nigh pairing 1"
    static let keyingMaterialByteCount = 32

    private enum Phase {
        case idle
        /// Committed; `hasCrossed` once the other side was seen to ask at the same time and gives way.
        case waitingForNonce(hasCrossed: Bool)
        case waitingForCommitment
        case waitingForReveal(PairingValue)
        case comparing(isConfirmed: Bool, isOtherConfirmed: Bool)
        case paired
        /// The other side may have sent something before it heard of it.
        case refusedHere
        case refusedThere
    }

    private(set) var role: Role
    private let own: PeerID
    private let other: PeerID
    private let keyingMaterial: SecretBytes
    private let nonce: SecretBytes
    private var phase: Phase

    /// An exchange between `own` and `other`, who are two, on the TLS connection that `keyingMaterial` was exported from. The
    /// nonce is for tests; by default it is drawn from libcrypto's private randomness.
    package init(
        role: Role, own: PeerID, other: PeerID, keyingMaterial: SecretBytes, nonce: SecretBytes? = nil
    ) {
        let nonce = nonce ?? Self.randomNonce()
        precondition(own != other, "a peer cannot be paired with itself")
        precondition(keyingMaterial.count == Self.keyingMaterialByteCount)
        precondition(nonce.count == PairingValue.byteCount)
        self.role = role
        self.own = own
        self.other = other
        self.keyingMaterial = keyingMaterial
        self.nonce = nonce
        phase = role == .asking ? .idle : .waitingForCommitment
    }

    private static func randomNonce() -> SecretBytes {
        let nonce = SecretBytes(count: PairingValue.byteCount)
        let done = nonce.withBytes {
            RAND_priv_bytes($0.bindMemory(to: UInt8.self).baseAddress, Int32($0.count))
        }
        precondition(done == 1, "libcrypto has no randomness")
        return nonce
    }

    /// Whether nothing more will come of it: paired, or refused.
    package var isOver: Bool {
        switch phase {
        case .paired, .refusedHere, .refusedThere: true
        default: false
        }
    }

    /// Whether the digits are shown and have yet to be confirmed by both.
    var showsCode: Bool {
        if case .comparing = phase { true } else { false }
    }

    // MARK: This side

    /// The first message of the asking side; nil for the asked one, which waits, and when called again.
    package mutating func begin() -> PairingMessage? {
        guard case .idle = phase else { return nil }
        phase = .waitingForNonce(hasCrossed: false)
        return nonce.withBytes { .commitment(commitment(to: UnsafeRawBufferPointer($0))) }
    }

    /// This side's person says that the digits are the same. Does nothing while no digits are shown, or when called again.
    package mutating func confirm() -> Step {
        guard case .comparing(isConfirmed: false, let isOtherConfirmed) = phase else { return .nothing }
        guard isOtherConfirmed else {
            phase = .comparing(isConfirmed: true, isOtherConfirmed: false)
            return .send(.confirmed)
        }
        phase = .paired
        return .bothConfirmed(send: .confirmed)
    }

    /// This side does not go on; gives the message that says so, or nil when it is over already.
    package mutating func refuse(_ reason: PairingRefusal) -> PairingMessage? {
        guard !isOver else { return nil }
        phase = .refusedHere
        return .refused(reason)
    }

    // MARK: The other side

    /// Takes a message of the other side.
    package mutating func receive(_ message: PairingMessage) throws(Violation) -> Step {
        switch (phase, message) {
        case (.refusedHere, _): return .nothing
        case (.paired, _), (.refusedThere, _): throw outOfOrder(message)
        case (_, .refused(let reason)):
            phase = .refusedThere
            return .refused(reason)
        case (.waitingForCommitment, .commitment(let commitment)):
            phase = .waitingForReveal(commitment)
            return .send(.nonce(ownNonce))
        case (.waitingForNonce(hasCrossed: false), .commitment(let commitment)):
            return crossed(by: commitment)
        case (.waitingForNonce, .nonce(let nonce)):
            phase = .comparing(isConfirmed: false, isOtherConfirmed: false)
            return .showCode(code(asking: ownNonce, asked: nonce), send: .reveal(ownNonce))
        case (.waitingForReveal(let commitment), .reveal(let nonce)):
            let revealed = nonce.bytes.withUnsafeBytes { self.commitment(to: $0) }
            guard revealed == commitment else { throw .brokenCommitment }
            phase = .comparing(isConfirmed: false, isOtherConfirmed: false)
            return .showCode(code(asking: nonce, asked: ownNonce), send: nil)
        case (.comparing(let isConfirmed, isOtherConfirmed: false), .confirmed):
            guard isConfirmed else {
                phase = .comparing(isConfirmed: false, isOtherConfirmed: true)
                return .otherConfirmed
            }
            phase = .paired
            return .bothConfirmed(send: nil)
        default: throw outOfOrder(message)
        }
    }

    /// Both have asked at once. The greater PeerID goes on asking, the other side is asked; what it has committed to was never
    /// shown, so its nonce is still good.
    private mutating func crossed(by commitment: PairingValue) -> Step {
        guard own < other else {
            phase = .waitingForNonce(hasCrossed: true)
            return .nothing
        }
        role = .asked
        phase = .waitingForReveal(commitment)
        return .send(.nonce(ownNonce))
    }

    private func outOfOrder(_ message: PairingMessage) -> Violation {
        let when =
            switch phase {
            case .idle: "before the asking side has begun"
            case .waitingForNonce: "while a nonce is awaited"
            case .waitingForCommitment: "while a commitment is awaited"
            case .waitingForReveal: "while the revealed nonce is awaited"
            case .comparing: "while the digits are compared"
            case .paired, .refusedHere, .refusedThere: "after the end"
            }
        return .outOfOrder(message: message.name, phase: when)
    }

    // MARK: Hashes

    private var ownNonce: PairingValue {
        guard let value = nonce.withBytes({ PairingValue($0) }) else {
            preconditionFailure("checked when it was made")
        }
        return value
    }

    private func commitment(to nonce: UnsafeRawBufferPointer) -> PairingValue {
        guard let value = PairingValue(hash("nigh pairing 1 commitment", [nonce])) else {
            preconditionFailure("a SHA-256 of another size")
        }
        return value
    }

    private func code(asking: PairingValue, asked: PairingValue) -> PairingCode {
        asking.bytes.withUnsafeBytes { first in
            asked.bytes.withUnsafeBytes { second in
                PairingCode(hash: hash("nigh pairing 1 digits", [first, second]))
            }
        }
    }

    /// SHA-256 of the label, the connection's keying material, both PeerIDs with the asking side's first, and the nonces. All but
    /// the label is of fixed size and no label begins another, so no two inputs are the same bytes.
    private func hash(_ label: String, _ nonces: [UnsafeRawBufferPointer]) -> [UInt8] {
        let peers = role == .asking ? own.bytes + other.bytes : other.bytes + own.bytes
        let parts = nonces.reduce(0) { $0 + $1.count }
        let input = SecretBytes(count: label.utf8.count + keyingMaterial.count + peers.count + parts)
        return input.withBytes { bytes in
            var rest = bytes[...]
            func append(_ part: some Collection<UInt8>) {
                UnsafeMutableRawBufferPointer(rebasing: rest).copyBytes(from: part)
                rest = rest.dropFirst(part.count)
            }
            append(label.utf8)
            keyingMaterial.withBytes { append($0) }
            append(peers)
            for nonce in nonces { append(nonce) }
            return SHA256.hash(UnsafeRawBufferPointer(bytes))
        }
    }
}
