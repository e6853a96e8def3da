import NighCore

/// The byte format of a record, which docs/reference/nigh/trace.md describes, and how entries are written.
/// `RecordReader` reads them.
public enum RecordFormat {
    /// The first bytes of a record: `NIGHREC` and a newline, so that nobody takes the file for text.
    public static let magic: [UInt8] = Array("NIGHREC\n".utf8)
    /// The version of the format. It changes when entries change in a way that readers do not skip by themselves.
    public static let version: UInt16 = 1
    /// The number of bytes before the first entry.
    public static let headerByteCount = 24
    /// The most bytes of an entry: the longest frame, and the fields before it.
    public static let longestEntry = (1 << 24) + 64

    enum Kind: UInt8 {
        case opened = 1
        case secured = 2
        case greeted = 3
        case preface = 4
        case frame = 5
        case ended = 6
        case gap = 7
        case packet = 8
    }

    /// The value in the header if whole payloads are recorded.
    static let noHeadLimit = UInt32.max
    /// The value in an ending that has no code of a close frame.
    static let noCode = UInt16.max

    /// Returns the header of a record that begins at `time` and has at most `headLimit` bytes of each payload.
    public static func header(time: Int64, headLimit: Int?) -> [UInt8] {
        var writer = FieldWriter()
        writer.write(raw: magic)
        writer.write(version)
        writer.write(0 as UInt16)
        writer.write(headLimit.map { UInt32(clamping: $0) } ?? noHeadLimit)
        writer.write(UInt64(bitPattern: time))
        return writer.bytes
    }

    /// Appends an entry to `bytes`.
    public static func write(_ entry: RecordEntry, to bytes: inout [UInt8]) {
        var writer = FieldWriter(behind: consume bytes)
        let start = writer.bytes.count
        writer.write(0 as UInt32)
        writer.write(kind(of: entry.content).rawValue)
        writer.write(UInt64(bitPattern: entry.time))
        writer.write(entry.link)
        switch entry.content {
        case .opened(let opening):
            writer.write(UInt8(opening.isDialled ? 1 : 0))
            writer.write(long: opening.scheme)
            writer.write(long: opening.localAddress?.description ?? "")
            writer.write(long: opening.remoteAddress?.description ?? "")
        case .secured(let peer, let wasResumed):
            writer.write(raw: peer.bytes)
            writer.write(UInt8(wasResumed ? 1 : 0))
        case .greeted(let greeting):
            writer.write(raw: greeting.peer.bytes)
            writer.write(greeting.incarnation)
            writer.write(long: greeting.service.description)
            writer.write(long: greeting.name.description)
        case .preface(let direction, let preface):
            writer.write(direction.rawValue)
            preface.withUnsafeBytes { writer.write(raw: $0) }
        case .frame(let frame):
            writer.write(frame.direction.rawValue | (frame.isCutOff ? cutOffBit : 0))
            writer.write(frame.type)
            writer.write(UInt32(clamping: frame.length))
            frame.payload.withUnsafeBytes { writer.write(raw: $0) }
        case .packet(let packet):
            writer.write(packet.direction.rawValue)
            writer.write(packet.connection)
            writer.write(packet.number)
            writer.write(UInt32(clamping: packet.length))
            packet.content.withUnsafeBytes { writer.write(raw: $0) }
        case .ended(let ending):
            writer.write(UInt8(ending.isByPeer ? 1 : 0))
            writer.write(ending.code ?? noCode)
            writer.write(long: ending.reason)
        case .gap(let entries, let missing):
            writer.write(entries)
            writer.write(missing)
        }
        writer.overwrite(UInt32(writer.bytes.count - start - 4), at: start)
        bytes = writer.bytes
    }

    /// Added to a frame's direction if its link ended in the middle of it.
    static let cutOffBit: UInt8 = 0x80

    private static func kind(of content: RecordEntry.Content) -> Kind {
        switch content {
        case .opened: .opened
        case .secured: .secured
        case .greeted: .greeted
        case .preface: .preface
        case .frame: .frame
        case .packet: .packet
        case .ended: .ended
        case .gap: .gap
        }
    }
}
