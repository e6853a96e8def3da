import NighCodes
import NighCore
import NighWeb

/// Handshakes and exchanges by which peers prove who they are, with an attacker between the two sides.
enum Security {
    private static let peers = Decoders.identities.map(\.peerID)

    // MARK: TLS

    // Made once, since each takes a signature.
    private static let contexts = Result { try Decoders.identities.prefix(2).map { try TLSContext($0) } }

    /// Two TLS channels. The bytes between them are changed, cut and repeated. The input decides everything except the
    /// keys, which libssl draws.
    static func tls(_ input: inout Input) throws {
        let contexts = try contexts.get()
        let channels = [TLSChannel(contexts[0], side: .dialling), TLSChannel(contexts[1], side: .accepting)]
        var waiting = [ByteQueue(), ByteQueue()]
        var (read, sent) = ([[UInt8](), []], [[UInt8](), []])
        var isOver = [false, false]
        for index in 0..<2 { try channels[index].begin(wire: &waiting[1 - index]) }
        func feed(_ slice: ByteSlice, to index: Int) throws {
            guard !isOver[index] else { return }
            var plain = ByteQueue()
            do throws(NighError) {
                try channels[index].receive(slice, plain: &plain, wire: &waiting[1 - index])
            } catch {
                isOver[index] = true
                switch error.cause {
                case .insecure, .limit: break
                default: throw Finding(description: "an unnamed failure: \(error)")
                }
            }
            let isProven = channels[index].provenPeer == peers[1 - index]
            try expect(plain.isEmpty || isProven, "plain bytes of a peer that is not proven")
            let held = channels[index].heldByteCount
            try expect(held <= TLSContext.recordSize, "more than a record is held")
            read[index] += plain.bytes
            try expect(sent[1 - index].starts(with: read[index]), "bytes that nobody sent")
        }
        for _ in 0..<8 {
            for index in [1, 0] {
                let original = waiting[index].bytes
                waiting[index].removeAll()
                let changed = input.edited(original)
                for slice in input.slices(of: changed) { try feed(slice, to: index) }
                if !input.isUsual(oneIn: 4) { try feed(ByteSlice(original), to: index) }
                if !input.isUsual() { channels[index].releaseIdleMemory() }
                guard channels[index].isEstablished, !isOver[index] else { continue }
                var plain = ByteQueue()
                plain.append(ByteSlice([UInt8](repeating: 5, count: 1 + input.number(below: 200))))
                sent[index] += plain.bytes
                try channels[index].seal(&plain, into: &waiting[1 - index])
            }
        }
    }

    // MARK: Pairing

    /// One side of a pairing. Its nonce, and what it received, are known here. So its digits can be computed
    /// independently, as section 7 of docs/reference/PROTOCOL.md defines them.
    private struct Side {
        let own: PeerID
        let other: PeerID
        let material: [UInt8]
        let nonce: [UInt8]
        var exchange: PairingExchange
        /// The records that it has sent and the other side has not received, as bytes on the link.
        var sent: [[UInt8]] = []
        /// The commitment that it answered with its nonce.
        private var commitment: [UInt8]?
        private(set) var code: PairingCode?
        private var isConfirmed = false
        private var isOtherConfirmed = false
        private(set) var isPaired = false

        init(_ role: PairingExchange.Role, _ index: Int, material: UInt8) {
            own = peers[index]
            other = peers[1 - index]
            self.material = [UInt8](repeating: material, count: 32)
            nonce = [UInt8](repeating: UInt8(index), count: 32)
            exchange = PairingExchange(
                role: role, own: own, other: other, keyingMaterial: SecretBytes(copying: self.material),
                nonce: SecretBytes(copying: nonce))
        }

        private func hash(_ label: String, isAsking: Bool, _ nonces: [UInt8]) -> [UInt8] {
            let peers = isAsking ? own.bytes + other.bytes : other.bytes + own.bytes
            return (Array(label.utf8) + material + peers + nonces).withUnsafeBytes { SHA256.hash($0) }
        }

        mutating func begin() { if let message = exchange.begin() { sent.append(message.payload) } }

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
            guard let message = try? bytes.withUnsafeBytes({ try PairingMessage(reading: $0) }) else {
                return
            }
            switch message {
            case .refused(.declined), .unknown: break
            default: try expect(message.payload == bytes, "\(bytes) is read as \(message)")
            }
            let wasOver = exchange.isOver
            var step: PairingExchange.Step
            do {
                step = try exchange.receive(message)
            } catch {
                return try expect(!error.message.isEmpty, "a violation without a description")
            }
            if step == .awaitAnswer { step = exchange.answer().map { .send($0) } ?? .nothing }
            try expect(!wasOver || step == .nothing, "\(step) after the end")
            switch (message, step) {
            case (.commitment(let value), .send(.nonce)): commitment = value.bytes
            case (.nonce(let value), .showCode(let code, .some(.reveal(let own)))) where own.bytes == nonce:
                try show(code, isAsking: true, nonce + value.bytes)
            case (.reveal(let value), .showCode(let code, nil)):
                let committed = hash("nigh pairing 1 commitment", isAsking: false, value.bytes)
                try expect(committed == commitment, "a nonce that was not committed to is accepted")
                try show(code, isAsking: false, value.bytes + nonce)
            case (_, .showCode): throw Finding(description: "digits are shown for \(message.name)")
            case (.confirmed, .otherConfirmed), (.confirmed, .bothConfirmed): isOtherConfirmed = true
            default: break
            }
            try handle(step)
        }

        private mutating func show(_ code: PairingCode, isAsking: Bool, _ nonces: [UInt8]) throws {
            try expect(self.code == nil, "digits are shown twice")
            let bytes = hash("nigh pairing 1 digits", isAsking: isAsking, nonces).prefix(8)
            let number = Int(bytes.reduce(0 as UInt64) { $0 << 8 | UInt64($1) } % 1_000_000)
            try expect(code.number == number, "\(code) is shown, expected \(number)")
            self.code = code
        }

        private mutating func handle(_ step: PairingExchange.Step) throws {
            switch step {
            case .send(let message), .showCode(_, send: .some(let message)): sent.append(message.payload)
            case .bothConfirmed(let message):
                if let message { sent.append(message.payload) }
                let isRight = code != nil && isConfirmed && isOtherConfirmed && !isPaired && exchange.isOver
                try expect(isRight, "paired before both have confirmed, or twice")
                isPaired = true
            case .nothing, .awaitAnswer, .showCode(_, send: nil), .otherConfirmed, .refused: break
            }
        }
    }

    /// Two sides that are being paired, or each with an attacker on a connection of its own: messages in any order,
    /// changed, repeated, held back or made up.
    static func pairing(_ input: inout Input) throws {
        let isOneConnection = input.isUsual()
        let roles: [PairingExchange.Role] = [
            input.isUsual() ? .asking : .asked, input.isUsual() ? .asked : .asking,
        ]
        var sides = (0..<2).map { Side(roles[$0], $0, material: isOneConnection ? 0 : UInt8($0)) }
        // Everything that was sent may be sent again, by and to either side.
        var known: [[UInt8]] =
            (1...3).map { [UInt8($0)] + [UInt8](repeating: 9, count: 32) } + [[4], [5, 0]]
        while !input.isAtEnd {
            let index = input.number(below: 2)
            switch input.number(below: 6) {
            case 0: sides[index].begin()
            case 1, 2:
                guard !sides[1 - index].sent.isEmpty else { continue }
                known.append(sides[1 - index].sent.removeFirst())
                try sides[index].receive(input.edited(known[known.count - 1]))
            case 3:
                // Two people who compare the digits confirm only equal ones.
                if sides[0].code == sides[1].code { try sides[index].confirm() }
            case 4: try sides[index].receive(input.edited(input.pick(known)))
            default: sides[index].refuse(input.pick(PairingRefusal.allCases))
            }
            let isRight = sides.allSatisfy { !$0.isPaired || sides[0].code == sides[1].code }
            try expect(isRight, "paired with digits on one screen alone")
        }
    }

    // MARK: Codes

    /// Two sides of a code exchange, and somebody between them who does not know the code: passes messages on, changes
    /// them, repeats those of earlier exchanges, and takes either side's place with a guess. Neither side may take the
    /// other for one that knows the code, unless nothing was changed.
    static func codes(_ input: inout Input) throws {
        let right = CodeKey(number: SecretBytes(copying: [UInt8](repeating: 1, count: 40)))
        let guess = CodeKey(number: SecretBytes(copying: [UInt8](repeating: 3, count: 40)))
        let recorded = try play(sides(right, right)) { $0 }.messages
        let attack = input.number(below: 5)
        // The attacker is on a link of its own with either side, or has the place of one of them.
        let sides = [
            sides(right, right),
            [side(.asking, right, 0, 2, over: 1), side(.asked, right, 1, 2, over: 2)],
            sides(guess, right), sides(right, guess),
            [side(.asking, right, 0, 1, over: 1), side(.asked, right, 1, 0, over: 2)],
        ][attack]
        let ends = try play(sides) { message in
            guard attack > 0 else { return message }
            var bytes = input.edited(input.isUsual() ? message.bytes : input.pick(recorded).bytes)
            return (try? CodeMessage.take(from: &bytes)) ?? message
        }
        try expect(ends.isProven == (attack == 0), attack == 0 ? "no agreement" : "proven without the code")
    }

    private static func sides(_ one: CodeKey, _ other: CodeKey) -> [CodeExchange] {
        [side(.asking, one, 0, 1, over: 0), side(.asked, other, 1, 0, over: 0)]
    }

    private static func side(
        _ role: CodeExchange.Role, _ key: CodeKey, _ own: Int, _ other: Int, over link: UInt8
    ) -> CodeExchange {
        let material = SecretBytes(copying: [UInt8](repeating: link, count: 32))
        return CodeExchange(role: role, key: key, own: peers[own], other: peers[other], material: material)
    }

    /// Passes the messages of both sides through `change`, until both have ended. Returns the messages, and whether any
    /// side takes the other for one that knows the code.
    private static func play(
        _ sides: [CodeExchange], _ change: (CodeMessage) -> CodeMessage
    ) throws -> (messages: [CodeMessage], isProven: Bool) {
        var sides = sides
        var waiting: (message: CodeMessage, to: Int)? = (sides[0].first, 1)
        var messages: [CodeMessage] = []
        var isProven = false
        while let (message, to) = waiting, messages.count < 8 {
            messages.append(message)
            guard let step = try? sides[to].receive(change(message)) else { break }
            switch step {
            case .send(let answer): waiting = (answer, 1 - to)
            case .restart(let answer), .wrong(let answer): waiting = answer.map { ($0, 1 - to) }
            case .proven(let answer):
                isProven = true
                waiting = answer.map { ($0, 1 - to) }
            }
        }
        return (messages, isProven)
    }

    // MARK: Guests

    /// Guests that try to enter a book with changed keys and tokens. Two of the tokens are invitations.
    static func guests(_ input: inout Input) throws {
        let tokens = (0..<3).map { [UInt8](repeating: UInt8($0), count: 16) }
        var book = GuestBook()
        var now = Moment(nanoseconds: 0)
        for token in tokens.dropFirst() { book.invite(token, at: now) }
        var guests: Set<PeerID> = []
        var used: Set<[UInt8]> = []
        while !input.isAtEnd {
            let key = [UInt8](repeating: 40 + UInt8(input.number(below: 3)), count: 32)
            let genuine = [1] + key + input.pick(tokens + [[]])
            let bytes = input.edited(genuine)
            now = now + .seconds(Int64(input.number(below: 90)))
            guard let entry = GuestEntry(bytes) else {
                try expect(bytes != genuine, "a proper entry is not understood")
                continue
            }
            try expect([1] + entry.key + (entry.token ?? []) == bytes, "\(bytes) is read differently")
            let source = "\(input.number(below: 3))"
            guard case .success(let peer) = book.enter(entry, from: source, at: now) else { continue }
            try expect(peer == entry.peer, "a guest gets the PeerID of another key")
            guard guests.insert(peer).inserted else { continue }
            let isInvited = entry.token.map { tokens.dropFirst().contains($0) } ?? false
            try expect(isInvited, "a guest comes in without an invitation")
            try expect(used.insert(entry.token ?? []).inserted, "two guests came in with one token")
        }
        try expect(Set(book.guests(at: now).map(\.id)) == guests, "other guests are listed than came in")
    }
}
