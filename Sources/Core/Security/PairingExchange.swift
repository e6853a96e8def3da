/// Runs one pairing on one TLS connection: both sides show the same six digits, and two people compare them.
///
/// This shows that nobody is between the two peers, as in Bluetooth's numeric comparison. A value without I/O and
/// without a clock, for one connection and one attempt. The session passes it the received messages and sends the
/// messages it returns. The session also sets the time limit, and asks its program before an exchange begins.
/// `docs/reference/PROTOCOL.md` describes the messages, and why a man in the middle has a chance of one in a million.
///
/// ```
/// asking   begin → commitment ──▶                                       reveal ──▶  confirm → confirmed ──▶
/// asked                         receive, answer → nonce ──▶  ◀ receive            receive → the code
/// ```
package struct PairingExchange {
    package enum Role {
        /// The side that began the pairing.
        case asking
        /// The side that was asked.
        case asked
    }

    /// The session's next step after a message or a confirmation.
    package enum Step: Equatable {
        case nothing
        case send(PairingMessage)
        /// Call `answer` when the session may give another nonce away.
        case awaitAnswer
        /// Send the message, if there is one, then show the digits to the person.
        case showCode(PairingCode, send: PairingMessage?)
        /// The other side's person has confirmed, but this side's person has not yet.
        case otherConfirmed
        /// Send the message, if there is one. The peers are then paired.
        case bothConfirmed(send: PairingMessage?)
        /// The other side refuses the pairing.
        case refused(PairingRefusal)
    }

    /// A message from the other side that no honest peer sends. The link must be ended.
    package enum Violation: Error, Hashable {
        /// A message that is not allowed in this phase.
        case outOfOrder(message: String, phase: String)
        /// The asking side revealed another nonce than the one it had committed to. An attacker that wants to choose
        /// the digits would do that.
        case brokenCommitment

        package var message: String {
            switch self {
            case .outOfOrder(let message, let phase): "the pairing message \"\(message)\" \(phase)"
            case .brokenCommitment: "the revealed pairing nonce is not the one that was committed to"
            }
        }

        var asCause: NighError.Cause { .protocolViolation(message) }
    }

    /// The label of the TLS exporter, and the number of bytes it exports. The exporter's context is empty.
    static let exporterLabel = "EXPORTER-nigh pairing 1"
    static let keyingMaterialByteCount = 32

    private enum Phase {
        case idle
        /// The commitment is sent. `hasCrossed` is true once a commitment from the other side has
        /// crossed it, and the other side gives way.
        case waitingForNonce(hasCrossed: Bool)
        case waitingForCommitment
        /// The commitment has come, and this side's nonce is not given away yet.
        case waitingForAnswer(PairingValue)
        case waitingForReveal(PairingValue)
        case comparing(isConfirmed: Bool, isOtherConfirmed: Bool)
        case paired
        /// This side refused. Messages that the other side sent before it received the refusal may still arrive.
        case refusedHere
        case refusedThere
    }

    private(set) var role: Role
    private let own: PeerID
    private let other: PeerID
    private let keyingMaterial: SecretBytes
    private let nonce: SecretBytes
    private var phase: Phase

    /// Creates an exchange between two different peers, `own` and `other`.
    ///
    /// `keyingMaterial` is exported from their TLS connection. Only tests pass a nonce; by default it comes from
    /// libcrypto's private random numbers.
    package init(
        role: Role, own: PeerID, other: PeerID, keyingMaterial: SecretBytes, nonce: SecretBytes? = nil
    ) {
        let nonce = nonce ?? .random(count: PairingValue.byteCount)
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

    /// Whether the exchange has ended: paired or refused.
    package var isOver: Bool {
        switch phase {
        case .paired, .refusedHere, .refusedThere: true
        default: false
        }
    }

    // MARK: This side

    /// Returns the first message of the asking side. Nil for the asked side, which waits, and when called again.
    package mutating func begin() -> PairingMessage? {
        guard case .idle = phase else { return nil }
        phase = .waitingForNonce(hasCrossed: false)
        return nonce.withBytes { .commitment(commitment(to: UnsafeRawBufferPointer($0))) }
    }

    /// Returns the nonce that answers the other side's commitment; nil if none waits for it. Whoever has the nonce can
    /// compute the digits, and give the exchange up unseen if it does not like them. So the session bounds how often
    /// it calls this.
    package mutating func answer() -> PairingMessage? {
        guard case .waitingForAnswer(let commitment) = phase else { return nil }
        phase = .waitingForReveal(commitment)
        return .nonce(ownNonce)
    }

    /// Notes that this side's person says that the digits are the same. Does nothing while no
    /// digits are shown, or when called again.
    package mutating func confirm() -> Step {
        guard case .comparing(isConfirmed: false, let isOtherConfirmed) = phase else { return .nothing }
        guard isOtherConfirmed else {
            phase = .comparing(isConfirmed: true, isOtherConfirmed: false)
            return .send(.confirmed)
        }
        phase = .paired
        return .bothConfirmed(send: .confirmed)
    }

    /// Refuses the pairing. Returns the message that says so, or nil if the exchange has already ended.
    package mutating func refuse(_ reason: PairingRefusal) -> PairingMessage? {
        guard !isOver else { return nil }
        phase = .refusedHere
        return .refused(reason)
    }

    // MARK: The other side

    /// Handles a message from the other side.
    package mutating func receive(_ message: PairingMessage) throws(Violation) -> Step {
        switch (phase, message) {
        case (.refusedHere, _): return .nothing
        case (.paired, _), (.refusedThere, _): throw outOfOrder(message)
        case (_, .refused(let reason)):
            phase = .refusedThere
            return .refused(reason)
        case (.waitingForCommitment, .commitment(let commitment)):
            phase = .waitingForAnswer(commitment)
            return .awaitAnswer
        case (.waitingForNonce(hasCrossed: false), .commitment(let commitment)):
            return resolveCrossing(with: commitment)
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

    /// Handles a commitment that crossed this side's own. The side with the greater PeerID stays the
    /// asking side, and the other side becomes the asked side. The nonce behind its commitment was
    /// never revealed, so it can still be used.
    private mutating func resolveCrossing(with commitment: PairingValue) -> Step {
        guard own < other else {
            phase = .waitingForNonce(hasCrossed: true)
            return .nothing
        }
        role = .asked
        phase = .waitingForAnswer(commitment)
        return .awaitAnswer
    }

    private func outOfOrder(_ message: PairingMessage) -> Violation {
        let when =
            switch phase {
            case .idle: "before the asking side has begun"
            case .waitingForNonce: "while a nonce is awaited"
            case .waitingForCommitment: "while a commitment is awaited"
            case .waitingForAnswer: "before the nonce that it answers"
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

    /// Returns the SHA-256 of the label, the connection's keying material, both PeerIDs with the
    /// asking side's first, and the nonces.
    ///
    /// All parts except the label have a fixed size, and no label begins with another one, so two
    /// different inputs never have the same bytes.
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
