import FoundationEssentials
import FourInARow
import Nigh
import NighBluetooth
import NighCalls
import NighCodes
import NighCore
import NighForwarding
import NighTCP

/// The values that strangers send whole. One that was accepted means the same when it is written and read again.
enum Decoders {
    static let identities = [1, 2, 3].map { Identity.ephemeral(seed: $0) }

    static func addresses(_ input: inout Input) throws {
        let text = String(decoding: input.rest(), as: UTF8.self)
        guard let address = TransportAddress(text) else { return }
        let destination: TCPDestination
        do throws(NighError) {
            destination = try TCPDestination(address)
        } catch {
            return try expect("\(error)".utf8.count <= 3 * text.utf8.count + 300, "a long error for \(text)")
        }
        try expect(!text.utf8.contains { $0 == 0 || $0 == UInt8(ascii: "+") }, "a sign or a zero in \(text)")
        let again: String
        switch destination {
        case .found(let id): return try expect(TCPDestination.address(of: id) == address, "\(text) is \(id)")
        case .number(let number):
            try expect(number.port != 0 && !number.lacksScope, "\(text) cannot be dialled")
            again = "tcp://\(number)"
        case .name(let name, let port):
            let isName = (1...253).contains(name.utf8.count) && !name.contains { " :/%[],=".contains($0) }
            try expect(port != 0 && isName, "\(name.debugDescription) is not a name")
            again = "tcp://\(name):\(port)"
        }
        let read = TransportAddress(again).flatMap { try? TCPDestination($0) }
        try expect(read == destination, "\(text.debugDescription), written as \(again), differs")
    }

    static func advertisements(_ input: inout Input) throws {
        guard let read = Advertisement(bytes: input.rest()) else { return }
        try expect(
            read.bytes.count <= Advertisement.maximumByteCount, "\(read.bytes.count) bytes are written")
        try expect(Advertisement(bytes: read.bytes) == read, "\(read) differs when it is read again")
    }

    /// The answer at the beginning of a forwarded connection, and the name of its stream.
    static func forwarding(_ input: inout Input) throws {
        let name = String(decoding: input.content(), as: UTF8.self)
        if let port = ForwardingName.port(name) {
            try expect("\(port)" == name && port != 0, "\"\(name)\" is read as port \(port)")
        }
        var cut = input
        let bytes = input.rest()
        var reader = ForwardingAnswerReader()
        var answer: ForwardingAnswer?
        var rest: [UInt8] = []
        for slice in cut.slices(of: bytes) {
            if answer != nil {
                rest += slice.bytes
            } else if let (read, more) = try reader.append(slice) {
                (answer, rest) = (read, more.bytes)
            }
        }
        let isWhole = bytes.count >= ForwardingAnswer.byteCount
        try expect((answer != nil) == isWhole, "an answer of \(bytes.count) bytes")
        guard let answer else { return }
        try expect(rest == Array(bytes.dropFirst(ForwardingAnswer.byteCount)), "\(rest.count) bytes are left")
        var again = ForwardingAnswerReader()
        try expect(try again.append(ByteSlice(answer.bytes))?.answer == answer, "\(answer) differs")
    }

    /// Messages of a channel. They are the same, however their bytes are cut into pieces.
    static func channels(_ input: inout Input) throws {
        let limit = input.pick([0, 64, 5_000])
        var cut = input
        let bytes = input.rest()
        var expected: [[UInt8]] = []
        var rest = bytes[...]
        var isRefused = false
        while rest.count >= 4, !isRefused {
            let length = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
            isRefused = length > limit
            guard !isRefused, rest.count >= 4 + length else { break }
            expected.append(Array(rest.dropFirst(4).prefix(length)))
            rest = rest.dropFirst(4 + length)
        }
        var parser = StreamMessageParser()
        var messages: [ByteSlice] = []
        let wasAccepted: Void? = try accepted { () throws(WireError) in
            for slice in cut.slices(of: bytes) {
                parser.append(slice)
                while let message = try parser.next(limit: limit) { messages.append(message) }
            }
        }
        try expect((wasAccepted == nil) == isRefused, "refused: \(!isRefused), expected \(isRefused)")
        // A message is a slice of the received bytes, or a copy. Neither may change when more bytes come.
        try expect(messages.map(\.bytes) == expected, "\(messages.count) messages of \(expected.count)")
    }

    /// The content of packets beside a link, and the offers of both sides. What follows their fields is ignored.
    static func packets(_ input: inout Input) throws {
        let isOffer = !input.isUsual()
        let bytes = input.rest()
        if isOffer {
            let read = try accepted(bytes) { bytes throws(WireError) in try DatagramOffer(reading: bytes) }
            guard let offer = read else { return }
            try expect(bytes.starts(with: offer.payload), "the offer \(bytes) became \(offer.payload)")
            let isPossible =
                offer.longestPacket >= DatagramPacket.leastLongest
                && offer.place.count <= DatagramOffer.longestPlace
            return try expect(isPossible, "the offer \(bytes) breaks its rules")
        }
        try bytes.withUnsafeBytes { raw in
            let read = try accepted { () throws(WireError) in try DatagramContent(reading: raw) }
            guard let content = read ?? nil else {
                let isLater = !(1...5).contains(bytes.first ?? 0)
                return try expect(read == nil || isLater, "a known kind is skipped: \(bytes)")
            }
            var written = [UInt8](repeating: 0, count: bytes.count)
            let count = written.withUnsafeMutableBytes(content.write)
            try expect(bytes.starts(with: written.prefix(count)), "\(bytes) became \(written)")
            let isSame = try written.withUnsafeBytes {
                try DatagramContent(reading: .init(rebasing: $0[..<count])) == content
            }
            try expect(isSame, "\(bytes) is read differently the second time")
            switch content {
            case .message, .fragment: try expect(count == bytes.count, "the message \(bytes) is cut")
            case .probe, .answer, .report: break
            }
        }
    }

    /// The messages of a code exchange.
    static func codeMessages(_ input: inout Input) throws {
        var bytes = input.rest()
        while let message = try? CodeMessage.take(from: &bytes) {
            var written = message.bytes
            try expect(try CodeMessage.take(from: &written) == message, "\(message) differs")
            try expect(written.isEmpty, "\(message) leaves bytes")
        }
    }

    // MARK: CBOR

    private struct Point: Codable, Sendable {
        var x: Int8
        var y: Double
        var z: UInt32?
    }

    private enum Shape: Codable, Sendable {
        case none
        case circle(Point, radius: Float)
        indirect case both(Shape, Shape)
    }

    private struct Everything: Codable, Sendable {
        var shapes: [Shape]
        var points: [String: Point]
        var numbers: [Int: [UInt64]]
        var picture: Data
        var texts: [String?]
    }

    static func cbor(_ input: inout Input) throws {
        guard var reader = try? CBORSequenceReader(ByteSlice(input.rest())) else { return }
        while !reader.isAtEnd {
            let types: [any Codable.Type] = [
                Everything.self, [Shape].self, Shape.self, [String: [Int?]].self, Double.self, String.self,
            ]
            var found = false
            for type in types where try read(type, &reader) { found = true }
            // If the next value is of none of these types, all values behind it stay unread.
            guard found else { break }
        }
    }

    private static func read<Value: Codable>(_ type: Value.Type, _ reader: inout CBORSequenceReader) throws
        -> Bool
    {
        guard !reader.isAtEnd, let value = try? reader.next(type) else { return false }
        let written = CBORSequenceWriter()
        try written.append(value)
        try expect(written.bytes.count < 1 << 20, "\(type) became too long")
        var again = try CBORSequenceReader(ByteSlice(written.bytes))
        let rewritten = CBORSequenceWriter()
        try rewritten.append(try again.next(type))
        // Dictionaries change their order, so only lengths can be compared.
        let isSame = again.isAtEnd && rewritten.bytes.count == written.bytes.count
        try expect(isSame, "\(type) is not the same when it is read again")
        return true
    }
}
