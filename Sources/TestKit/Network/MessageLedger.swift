/// Accounts for all messages of a world: which were accepted for sending, which arrived, and whether they arrived
/// exactly once, in order and intact.
///
/// A *stream* is what one run of a sender sends to a peer in one conversation, as the sender was notified of it. It
/// has a row for each lane, one for unreliable messages and one for those of kinds.
package struct MessageLedger {
    /// The messages that are counted separately within a stream.
    package enum Row: Int, CaseIterable, Sendable {
        /// The main lane.
        case main
        /// The bulk lane.
        case bulk
        /// Unreliable messages.
        case unreliable
        /// Messages of kinds, which are all on the main lane.
        case kinds
    }

    /// A receiver: a peer, one of its runs, and one of the conversations that were reported to that run. The
    /// conversation is nil if the run reads from its inbox, because it then cannot know the conversation.
    package struct Reader: Hashable {
        /// The index of the peer.
        package var receiver: Int
        /// The number of its run.
        package var run: Int
        /// The number of the conversation.
        package var conversation: Int?

        /// Creates a reader.
        package init(receiver: Int, run: Int, conversation: Int?) {
            self.receiver = receiver
            self.run = run
            self.conversation = conversation
        }
    }

    private struct RowAccount {
        var lengths: [Int] = []
        var received = 0
        /// The numbers of the unreliable messages that have arrived.
        var seen: Set<Int> = []
    }

    private struct Stream {
        let from: Int
        let run: Int
        let to: Int
        var rows: [RowAccount] = Row.allCases.map { _ in RowAccount() }
        var reader: Reader?
    }

    private struct Place: Hashable {
        let reader: Int
        let run: Int
        let sender: Int
        let row: Row
    }

    private var streams: [Stream] = []
    private var currentStream: [Place: Int] = [:]
    /// The number of reliable messages that sessions accepted.
    package private(set) var accepted = 0
    /// The number of reliable messages that arrived.
    package private(set) var received = 0
    /// The number of those that had a kind.
    package private(set) var kindsReceived = 0
    /// The payload bytes of the reliable messages that arrived.
    package private(set) var bytesReceived = 0
    /// The number of unreliable messages that sessions accepted.
    package private(set) var unreliableSent = 0
    /// The number of unreliable messages that arrived.
    package private(set) var unreliableReceived = 0

    /// Creates an empty ledger.
    package init() {}

    /// Opens a stream when a conversation begins for a sender. Returns the stream's number.
    package mutating func open(from sender: Int, run: Int, to receiver: Int) -> Int {
        streams.append(Stream(from: sender, run: run, to: receiver))
        return streams.count - 1
    }

    /// Returns the next message of a row, with `length` bytes. The first message of a lane and every unreliable message
    /// have at least the length of a header.
    package func nextMessage(in stream: Int, row: Row, length: Int) -> [UInt8] {
        let number = streams[stream].rows[row.rawValue].lengths.count
        let isBare = row != .unreliable && number > 0
        return NumberedMessage.bytes(
            stream: stream, row: row, number: number,
            length: isBare ? length : max(length, NumberedMessage.headerLength))
    }

    /// Records that the session accepted the message which `nextMessage` returned.
    package mutating func accept(_ stream: Int, row: Row, length: Int) {
        streams[stream].rows[row.rawValue].lengths.append(length)
        if row == .unreliable { unreliableSent += 1 } else { accepted += 1 }
    }

    /// Removes the last message again, because the session did not accept it. For senders that must record a message
    /// before the session has answered.
    package mutating func withdraw(_ stream: Int, row: Row) {
        streams[stream].rows[row.rawValue].lengths.removeLast()
        accepted -= 1
    }

    /// Returns how many reliable messages of a stream have not arrived.
    package func missing(in stream: Int) -> Int {
        Row.allCases.filter { $0 != .unreliable }.reduce(0) { missing, row in
            let account = streams[stream].rows[row.rawValue]
            return missing + account.lengths.count - account.received
        }
    }

    /// Records an arrival. Returns what is wrong with it; nil if nothing is.
    package mutating func recordArrival(
        of bytes: UnsafeRawBufferPointer, at reader: Reader, from sender: Int, row: Row
    ) -> Violation? {
        let place = Place(reader: reader.receiver, run: reader.run, sender: sender, row: row)
        let header = NumberedMessage.header(of: bytes)
        if row == .unreliable { return recordUnreliableArrival(bytes, header, at: reader, from: sender) }
        guard let current = currentStream[place] else {
            return recordFirstArrival(bytes, header, at: reader, from: sender, place: place)
        }
        if let header, header.row == row, header.length == bytes.count, header.stream != current,
            streams.indices.contains(header.stream), isIntact(bytes, header)
        {
            return recordFirstArrival(bytes, header, at: reader, from: sender, place: place)
        }
        let expected = streams[current].rows[row.rawValue].received
        guard expected < streams[current].rows[row.rawValue].lengths.count else {
            let number = header?.number ?? -1
            return Violation(
                .exactlyOnce,
                "stream \(current) \(row): all \(expected) had arrived, and number \(number) arrives")
        }
        if let header, header.stream == current, header.row == row, header.number != expected {
            let rule: Violation.Rule = header.number < expected ? .exactlyOnce : .order
            return Violation(
                rule, "stream \(current) \(row): number \(header.number) arrives, \(expected) is next")
        }
        guard bytes.count == streams[current].rows[row.rawValue].lengths[expected],
            NumberedMessage.isIntact(bytes, stream: current, row: row, number: expected)
        else {
            return Violation(
                .order,
                "stream \(current) \(row): \(bytes.count) bytes arrive that are not number \(expected) of "
                    + "\(streams[current].rows[row.rawValue].lengths[expected]) bytes")
        }
        return countArrival(current, row, bytes.count, at: reader)
    }

    private func isIntact(_ bytes: UnsafeRawBufferPointer, _ header: NumberedMessage.Header) -> Bool {
        NumberedMessage.isIntact(bytes, stream: header.stream, row: header.row, number: header.number)
    }

    private mutating func recordFirstArrival(
        _ bytes: UnsafeRawBufferPointer, _ header: NumberedMessage.Header?, at reader: Reader,
        from sender: Int,
        place: Place
    ) -> Violation? {
        guard let header, header.row == place.row, streams.indices.contains(header.stream),
            header.length == bytes.count, isIntact(bytes, header)
        else { return Violation(.order, "\(bytes.count) bytes from \(sender) that do not begin a stream") }
        let stream = streams[header.stream]
        guard stream.from == sender, stream.to == reader.receiver else {
            return Violation(
                .order,
                "a message of stream \(header.stream), \(stream.from) to \(stream.to), reached \(reader.receiver)"
            )
        }
        if let current = currentStream[place], header.stream < current {
            return Violation(.exactlyOnce, "stream \(header.stream) arrives again after \(current) had begun")
        }
        guard header.number == 0 else {
            return Violation(
                stream.rows[place.row.rawValue].received > 0 ? .exactlyOnce : .order,
                "stream \(header.stream) \(place.row) begins with number \(header.number)")
        }
        guard stream.rows[place.row.rawValue].received == 0 else {
            return Violation(.exactlyOnce, "stream \(header.stream) \(place.row) begins a second time")
        }
        guard !stream.rows[place.row.rawValue].lengths.isEmpty else {
            return Violation(.exactlyOnce, "stream \(header.stream) \(place.row) was never sent on")
        }
        currentStream[place] = header.stream
        return countArrival(header.stream, place.row, bytes.count, at: reader)
    }

    private mutating func countArrival(_ stream: Int, _ row: Row, _ count: Int, at reader: Reader)
        -> Violation?
    {
        streams[stream].rows[row.rawValue].received += 1
        received += 1
        if row == .kinds { kindsReceived += 1 }
        bytesReceived += count
        guard let known = streams[stream].reader else {
            streams[stream].reader = reader
            return nil
        }
        guard known == reader else {
            return Violation(
                .exactlyOnce,
                "stream \(stream) first reached run \(known.run), conversation \(known.conversation ?? -1), "
                    + "now run \(reader.run), conversation \(reader.conversation ?? -1)")
        }
        return nil
    }

    private mutating func recordUnreliableArrival(
        _ bytes: UnsafeRawBufferPointer, _ header: NumberedMessage.Header?, at reader: Reader,
        from sender: Int
    ) -> Violation? {
        guard let header, header.row == .unreliable, streams.indices.contains(header.stream),
            header.length == bytes.count, isIntact(bytes, header)
        else { return Violation(.unreliable, "\(bytes.count) unreliable bytes that nobody sent") }
        let stream = streams[header.stream]
        guard stream.from == sender, stream.to == reader.receiver,
            header.number < stream.rows[Row.unreliable.rawValue].lengths.count
        else {
            return Violation(.unreliable, "unexpected unreliable \(header.number) of stream \(header.stream)")
        }
        guard streams[header.stream].rows[Row.unreliable.rawValue].seen.insert(header.number).inserted else {
            return Violation(
                .unreliable, "unreliable \(header.number) of stream \(header.stream) arrived twice")
        }
        unreliableReceived += 1
        return nil
    }
}
