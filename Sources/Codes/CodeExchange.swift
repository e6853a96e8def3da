import NighCore

/// One exchange in which two peers find out whether they know the same one-time code. A value without I/O and without a
/// clock, for one link.
///
/// The asking side has a code that a person typed; the asked side has shown it. The asking side proves first that it
/// knows the code. So the asked side sees every guess, and an asking side that leaves before it has learnt nothing.
///
/// ```
/// asking   begin → share ──▶                     receive → confirmation ──▶          receive → proven
/// asked                     receive → share ──▶                  receive → proven, confirmation ──▶
/// ```
package struct CodeExchange {
    package enum Role: Sendable {
        /// The side whose person typed the code.
        case asking
        /// The side that shows the code.
        case asked
    }

    /// The result of a message.
    package enum Step: Equatable {
        case send(CodeMessage)
        /// The two sides compute on different links: send the message, if there is one, and make another exchange for
        /// the link that carries the conversation now. Nobody has made a guess.
        case restart(send: CodeMessage?)
        /// The other side knows the code. Send the message, if there is one.
        case proven(send: CodeMessage?)
        /// The other side does not know the code. Send the message, if there is one. The code must not be used again.
        case wrong(send: CodeMessage?)
    }

    /// A message that no honest peer sends. The exchange has ended, and nobody has made a guess.
    package enum Violation: Error, Equatable {
        case outOfOrder
        /// A share that is no point of the curve.
        case impossibleShare
    }

    private enum Phase {
        case waitingForShare
        case waitingForConfirmation(SPAKE2.Keys)
        case over
    }

    /// The label of the TLS exporter.
    package static let exporterLabel = "EXPORTER-nigh code 1"

    private let role: Role
    private let spake: SPAKE2
    private let identities: SPAKE2.Identities
    private let context: [UInt8]
    private let link: [UInt8]
    private var phase = Phase.waitingForShare

    /// Creates an exchange between two different peers.
    ///
    /// - Parameters:
    ///   - key: the key of the code.
    ///   - material: the keying material of the link that carries their conversation.
    ///   - secret: only tests pass one.
    package init(
        role: Role, key: CodeKey, own: PeerID, other: PeerID, material: SecretBytes,
        secret: SecretBytes? = nil
    ) {
        precondition(own != other, "a peer exchanges codes with others")
        self.role = role
        spake = SPAKE2(role: role == .asking ? .a : .b, password: key.bytes, secret: secret)
        identities =
            role == .asking
            ? .init(a: own.bytes, b: other.bytes) : .init(a: other.bytes, b: own.bytes)
        let exported = material.withBytes { Array($0) }
        context = Array("nigh code 1".utf8) + exported
        link = Array("nigh code 1 link".utf8 + exported).withUnsafeBytes {
            Array(SHA256.hash($0).prefix(CodeMessage.linkByteCount))
        }
    }

    /// The first message of the asking side.
    package var first: CodeMessage { .share(spake.share, link: link) }

    /// Handles a message from the other side.
    package mutating func receive(_ message: CodeMessage) throws(Violation) -> Step {
        switch (role, phase, message) {
        case (.asked, .waitingForShare, .share(_, let link)) where link != self.link:
            phase = .over
            return .restart(send: .again)
        case (.asked, .waitingForShare, .share(let share, _)):
            phase = .waitingForConfirmation(try keys(from: share))
            return .send(first)
        case (.asked, .waitingForConfirmation(let keys), .confirmation(let confirmation)):
            phase = .over
            guard SPAKE2.areEqual(confirmation, keys.confirmationOfA) else { return .wrong(send: .refused) }
            return .proven(send: .confirmation(keys.confirmationOfB))
        case (.asking, .waitingForShare, .again):
            phase = .over
            return .restart(send: nil)
        case (.asking, .waitingForShare, .share(let share, link)):
            let keys = try keys(from: share)
            phase = .waitingForConfirmation(keys)
            return .send(.confirmation(keys.confirmationOfA))
        case (.asking, .waitingForConfirmation(let keys), .confirmation(let confirmation)):
            phase = .over
            return SPAKE2.areEqual(confirmation, keys.confirmationOfB)
                ? .proven(send: nil) : .wrong(send: nil)
        case (.asking, .waitingForShare, .refused), (.asking, .waitingForConfirmation, .refused):
            phase = .over
            return .wrong(send: nil)
        default:
            phase = .over
            throw .outOfOrder
        }
    }

    private func keys(from share: [UInt8]) throws(Violation) -> SPAKE2.Keys {
        guard let keys = spake.finish(with: share, identities, context: context) else {
            throw .impossibleShare
        }
        return keys
    }
}

/// The number that follows from a code. Computing it takes some 50 ms, so it is made once for each code.
package struct CodeKey: Sendable {
    let bytes: SecretBytes

    package init(_ code: OneTimeCode) { bytes = code.key }

    /// Creates the key with these bytes, for tests: a number in network order.
    package init(number bytes: SecretBytes) { self.bytes = bytes }

    /// Whether both were made together.
    package func isSame(as other: CodeKey?) -> Bool { bytes === other?.bytes }
}
