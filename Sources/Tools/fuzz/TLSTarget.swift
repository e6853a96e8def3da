import NighCore

/// TLS channels between which somebody changes bytes, cuts them, repeats them and puts others in.
///
/// What is changed follows from the seed, and where; the keys do not, since libssl draws them.
enum TLSTarget {
    // Confined to the thread that runs the inputs: contexts are made once, since each takes a signature.
    private static let contexts = Result { try Stage.identities.map { try TLSContext($0) } }

    /// Both ends, and what each wrote that the other has not got.
    private struct Ends {
        let channels: [TLSChannel]
        var waiting = [ByteQueue(), ByteQueue()]
        /// What each could read, and has sent.
        var read = [[UInt8](), []]
        var sent = [[UInt8](), []]
        /// Those that gave up: nothing is fed to them any more.
        var isOver = [false, false]

        /// Hands `slice` to the channel of `index`; what it answers waits for the other.
        mutating func feed(_ slice: ByteSlice, to index: Int) throws {
            guard !isOver[index] else { return }
            let channel = channels[index]
            var plain = ByteQueue()
            do throws(NighError) {
                try channel.receive(slice, plain: &plain, wire: &waiting[1 - index])
            } catch {
                isOver[index] = true
                guard case .insecure = error.cause else {
                    guard case .limit = error.cause else { throw Finding("an unnamed failure: \(error)") }
                    return
                }
            }
            if !plain.isEmpty, channel.provenPeer != Stage.identities[1 - index].peerID {
                throw Finding("plain bytes of nobody")
            }
            if channel.heldByteCount > TLSContext.recordSize { throw Finding("more than a record is held") }
            read[index] += plain.bytes
            if !sent[1 - index].starts(with: read[index]) { throw Finding("bytes that nobody sent") }
        }

        /// Has the channel of `index` say something, if it can.
        mutating func speak(_ index: Int, _ bytes: [UInt8]) throws {
            guard channels[index].isEstablished, !isOver[index] else { return }
            var plain = ByteQueue()
            plain.append(ByteSlice(bytes))
            try channels[index].seal(&plain, into: &waiting[1 - index])
            sent[index] += bytes
        }
    }

    static func run(_ mutator: inout Mutator) throws {
        let contexts = try contexts.get()
        var ends = Ends(channels: [
            TLSChannel(contexts[0], side: .dialling), TLSChannel(contexts[1], side: .accepting),
        ])
        try ends.channels[0].begin(wire: &ends.waiting[1])
        try ends.channels[1].begin(wire: &ends.waiting[0])
        // Most inputs change the first thing that is said, since what follows depends on it.
        var untilChange = mutator.oneIn(2) ? 0 : mutator.number(below: 8)
        for _ in 0..<12 {
            for index in [1, 0] {
                var bytes = ends.waiting[index].bytes
                ends.waiting[index].removeAll()
                guard !bytes.isEmpty else { continue }
                let original = bytes
                if untilChange <= 0 { mutator.mutate(&bytes) }
                untilChange -= 1
                for slice in mutator.cut(bytes) { try ends.feed(slice, to: index) }
                if mutator.oneIn(8) { try ends.feed(ByteSlice(original), to: index) }
                if mutator.oneIn(8) { ends.channels[index].releaseIdleMemory() }
                try ends.speak(index, [UInt8](repeating: 5, count: mutator.number(below: 300)))
            }
        }
    }
}
