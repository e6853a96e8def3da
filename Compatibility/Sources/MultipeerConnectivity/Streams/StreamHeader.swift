import NighCore

/// The header of each stream between two engines.
struct StreamHeader: Sendable {
    enum Content: Sendable {
        /// The program's own stream.
        case stream
        /// A file with this number of bytes.
        case resource(size: Int64)
    }

    /// The name of all streams for Nigh. The program's own name is in the header, where it may be long.
    static let streamName = "multipeer"

    var sessions: WireMessage.Sessions
    var name: String
    var content: Content

    /// The longest name, in bytes.
    static let nameLimit = 65_535

    var bytes: [UInt8] {
        let name = Array(name.utf8.prefix(Self.nameLimit))
        var writer = ByteWriter()
        writer.put(UInt16(name.count))
        writer.put(sessions.to)
        writer.put(sessions.from)
        switch content {
        case .stream: writer.put(Int64(-1))
        case .resource(let size): writer.put(size)
        }
        writer.put(rest: name)
        return writer.bytes
    }

    private static let fixedCount = 26

    /// Reads the header of a stream that a peer has opened, and returns it with the bytes behind it that came together
    /// with it. Nil if the stream ends before its header does.
    static func read(from stream: ByteStream) async -> (StreamHeader, rest: [UInt8])? {
        var bytes: [UInt8] = []
        while true {
            if bytes.count >= fixedCount {
                let count = fixedCount + Int(bytes[0]) << 8 + Int(bytes[1])
                if bytes.count >= count { return (parse(bytes), Array(bytes[count...])) }
            }
            guard let next = try? await stream.read() else { return nil }
            bytes += next.bytes
        }
    }

    private static func parse(_ bytes: [UInt8]) -> StreamHeader {
        bytes.withUnsafeBytes { bytes in
            var reader = ByteReader(bytes)
            let count = Int(reader.number(UInt16.self) ?? 0)
            let sessions = WireMessage.Sessions(
                to: reader.number(UInt64.self) ?? 0, from: reader.number(UInt64.self) ?? 0)
            let size = reader.number(Int64.self) ?? -1
            let name = String(decoding: reader.bytes(count) ?? [], as: UTF8.self)
            return StreamHeader(
                sessions: sessions, name: name, content: size < 0 ? .stream : .resource(size: size))
        }
    }
}
