import NighCore

/// Two TLS channels between which bytes are changed, cut, repeated and replaced.
///
/// What is changed, and where, follows from the seed. The keys do not, since libssl draws them.
enum TLSTarget {
    // Confined to the thread that runs the inputs. Contexts are made once, since each takes a signature.
    private static let contexts = Result { try SessionHarness.identities.map { try TLSContext($0) } }

    /// Both ends, and what each has written that the other has not received.
    private struct Ends {
        let channels: [TLSChannel]
        var waiting = [ByteQueue(), ByteQueue()]
        /// The plain bytes that each end has read.
        var read = [[UInt8](), []]
        /// The plain bytes that each end has sent.
        var sent = [[UInt8](), []]
        /// The ends that gave up. Nothing is fed to them any more.
        var isOver = [false, false]

        /// Passes `slice` to the channel of `index`. Its answer waits for the other end.
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
            if !plain.isEmpty, channel.provenPeer != SessionHarness.identities[1 - index].peerID {
                throw Finding("plain bytes that nobody sent")
            }
            if channel.heldByteCount > TLSContext.recordSize { throw Finding("more than a record is held") }
            read[index] += plain.bytes
            if !sent[1 - index].starts(with: read[index]) { throw Finding("bytes that nobody sent") }
        }

        /// Makes the channel of `index` send `bytes`, if it can.
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
        // Most inputs change the first bytes that are sent, since everything after them depends on them.
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
