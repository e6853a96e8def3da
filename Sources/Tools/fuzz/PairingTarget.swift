import NighCore

/// Two sides that are being paired, or one side and an attacker that poses as the other: messages in any order,
/// changed, repeated, held back or invented.
///
/// The nonce of each exchange, and what the exchange received, are known here. So its digits can be computed
/// independently.
enum PairingTarget {
    private struct Side {
        let own: PeerID
        let other: PeerID
        let material: [UInt8]
        let nonce: [UInt8]
        var exchange: PairingExchange
        /// What it has sent that the other side has not received, as bytes on the link.
        var sent: [[UInt8]] = []
        /// The commitment that it answered with its nonce.
        var commitment: [UInt8]?
        var code: PairingCode?
        /// What has happened since the code was shown.
        var isConfirmed = false
        var isOtherConfirmed = false
        var isPaired = false

        init(_ role: PairingExchange.Role, _ own: Int, material: [UInt8], nonce: [UInt8]) {
            self.own = SessionHarness.identities[own].peerID
            other = SessionHarness.identities[1 - own].peerID
            self.material = material
            self.nonce = nonce
            exchange = PairingExchange(
                role: role, own: self.own, other: other, keyingMaterial: SecretBytes(copying: material),
                nonce: SecretBytes(copying: nonce))
        }

        /// Computes a hash as section 7 of docs/reference/PROTOCOL.md defines it.
        private func hash(_ label: String, isAsking: Bool, _ nonces: [UInt8]) -> [UInt8] {
            let peers = isAsking ? own.bytes + other.bytes : other.bytes + own.bytes
            let input = Array(label.utf8) + material + peers + nonces
            return input.withUnsafeBytes { SHA256.hash($0) }
        }

        private func number(isAsking: Bool, _ nonces: [UInt8]) -> Int {
            let bytes = hash("nigh pairing 1 digits", isAsking: isAsking, nonces).prefix(8)
            return Int(bytes.reduce(0 as UInt64) { $0 << 8 | UInt64($1) } % 1_000_000)
        }

        mutating func begin() {
            if let message = exchange.begin() { sent.append(message.payload) }
        }

        mutating func confirm() throws {
            let step = exchange.confirm()
            if code != nil, !isPaired { isConfirmed = true }
            try handle(step)
        }

        mutating func refuse(_ reason: PairingRefusal) {
            if let message = exchange.refuse(reason) { sent.append(message.payload) }
        }

        /// Takes received bytes. Bytes that are no message have no effect.
        mutating func receive(_ bytes: [UInt8]) throws {
            guard let message = try PairingTarget.message(of: bytes) else { return }
            let wasOver = exchange.isOver
            var step: PairingExchange.Step
            do {
                step = try exchange.receive(message)
            } catch {
                if error.message.isEmpty { throw Finding("a violation without a description") }
                return
            }
            if step == .awaitAnswer { step = exchange.answer().map { .send($0) } ?? .nothing }
            if wasOver, step != .nothing { throw Finding("\(step) after the end") }
            switch (message, step) {
            case (.commitment(let value), .send(.nonce)): commitment = value.bytes
            case (.nonce(let value), .showCode(let code, .some(.reveal(let own)))) where own.bytes == nonce:
                try show(code, number: number(isAsking: true, nonce + value.bytes))
            case (.reveal(let value), .showCode(let code, nil)):
                guard hash("nigh pairing 1 commitment", isAsking: false, value.bytes) == commitment else {
                    throw Finding("a nonce that was not committed to is accepted")
                }
                try show(code, number: number(isAsking: false, value.bytes + nonce))
            case (_, .showCode): throw Finding("digits are shown for \(message.name)")
            case (.confirmed, .otherConfirmed), (.confirmed, .bothConfirmed): isOtherConfirmed = true
            default: break
            }
            try handle(step)
        }

        private mutating func show(_ code: PairingCode, number: Int) throws {
            if self.code != nil { throw Finding("digits are shown twice") }
            if code.number != number { throw Finding("\(code) is shown, expected \(number)") }
            self.code = code
        }

        private mutating func handle(_ step: PairingExchange.Step) throws {
            switch step {
            case .send(let message), .showCode(_, send: .some(let message)): sent.append(message.payload)
            case .bothConfirmed(let message):
                if let message { sent.append(message.payload) }
                guard code != nil, isConfirmed, isOtherConfirmed, !isPaired, exchange.isOver else {
                    throw Finding("paired before both have confirmed, or twice")
                }
                isPaired = true
            case .nothing, .awaitAnswer, .showCode(_, send: nil), .otherConfirmed, .refused: break
            }
        }
    }

    /// Returns the message in `bytes`. What can be read must be written as it was, except reasons and kinds of a later
    /// version.
    private static func message(of bytes: [UInt8]) throws -> PairingMessage? {
        guard let message = try? bytes.withUnsafeBytes({ try PairingMessage(reading: $0) }) else {
            return nil
        }
        switch message {
        case .refused(.declined), .unknown: return message
        default: break
        }
        if message.payload != bytes { throw Finding("\(bytes) is read as \(message)") }
        return message
    }

    /// Returns whether a side was paired in the end.
    @discardableResult
    static func run(_ mutator: inout Mutator) throws -> Bool {
        let materials = [mutator.bytes(32), mutator.bytes(32)]
        // Either each side has a connection of its own to an attacker in between, or both share one connection. In half
        // of the cases with one connection, most messages pass unchanged.
        let isOneConnection = mutator.oneIn(2)
        let isCalm = isOneConnection && mutator.oneIn(2)
        var sides = (0..<2).map { index in
            let isAsking = isCalm ? index == 0 : mutator.oneIn(2)
            return Side(
                isAsking ? .asking : .asked, index, material: materials[isOneConnection ? 0 : index],
                nonce: mutator.bytes(32))
        }
        // Everything that was sent may be sent again, by and to either side.
        var sentMessages = (1...3).map { [UInt8($0)] + mutator.bytes(32) } + [[4], [5, 0], [5, 9]]
        for _ in 0..<(8 + mutator.number(below: 24)) {
            let index = mutator.number(below: 2)
            switch mutator.number(below: isCalm && !mutator.oneIn(12) ? 7 : 10) {
            case 0: sides[index].begin()
            case 1...4:
                guard !sides[1 - index].sent.isEmpty else { continue }
                let bytes = sides[1 - index].sent.removeFirst()
                sentMessages.append(bytes)
                let isChanged = mutator.oneIn(isCalm ? 30 : 4)
                try sides[index].receive(
                    isChanged ? mutator.perhapsChanged(bytes, with: sentMessages) : bytes)
            case 5...6:
                // Two people who compare the digits confirm only equal ones.
                guard sides[0].code == sides[1].code else { continue }
                try sides[index].confirm()
            case 7...8:
                try sides[index].receive(
                    mutator.perhapsChanged(mutator.pick(sentMessages), with: sentMessages))
            default: if mutator.oneIn(6) { sides[index].refuse(mutator.pick(PairingRefusal.allCases)) }
            }
            for side in sides where side.isPaired && sides[0].code != sides[1].code {
                throw Finding("paired with \(String(describing: side.code)) on one screen alone")
            }
        }
        return sides.contains(where: \.isPaired)
    }
}
