import NighCore

/// Writes entries as a capture in the pcapng format, which Wireshark opens: one packet per frame and per packet of a
/// datagram path, one interface per link.
///
/// A value that makes bytes; its user decides where they go. Packets have the link type USER0, and a header of 16 bytes
/// that docs/reference/nigh/trace.md describes. `nigh.lua` dissects them.
public struct PacketCapture {
    /// The link type of the packets, `LINKTYPE_USER0`.
    public static let linkType: UInt16 = 147
    /// The number of bytes before each packet's preface, frame, or packet of a datagram path.
    public static let headerByteCount = 16

    private var interfaces: [UInt64: UInt32] = [:]
    private var dialled: Set<UInt64> = []
    private var proven: [UInt64: PeerID] = [:]
    private var openings: [UInt64: LinkOpening] = [:]
    private var missing: UInt64 = 0
    /// How many packets there are so far.
    public private(set) var packetCount = 0

    private enum Block {
        static let section: UInt32 = 0x0A0D_0D0A
        static let interface: UInt32 = 1
        static let enhancedPacket: UInt32 = 6
    }

    private enum PacketKind {
        static let preface: UInt8 = 0
        static let frame: UInt8 = 1
        static let datagram: UInt8 = 2
    }

    /// Creates an empty capture.
    public init() {}

    /// Returns the first bytes of the file.
    public func fileHeader() -> [UInt8] {
        var body = BlockBody()
        body.write(0x1A2B_3C4D as UInt32)
        body.write(1 as UInt16)
        body.write(0 as UInt16)
        body.write(UInt64.max)
        body.write(option: 4, Array("nigh trace".utf8))
        body.endOptions()
        return body.block(Block.section)
    }

    /// Returns the blocks that follow from an entry; none if the entry is not a packet.
    public mutating func blocks(for entry: RecordEntry) -> [UInt8] {
        switch entry.content {
        case .opened(let opening):
            openings[entry.link] = opening
            if opening.isDialled { dialled.insert(entry.link) }
            return []
        case .secured(let peer, _):
            proven[entry.link] = peer
            return []
        case .greeted: return []
        case .ended:
            openings[entry.link] = nil
            return []
        case .gap(let entries, _):
            missing &+= entries
            return []
        case .preface(let direction, let bytes):
            return packet(entry, direction, PacketKind.preface, length: bytes.count, bytes.bytes)
        case .frame(let frame):
            let header = [
                UInt8(truncatingIfNeeded: frame.length >> 16), UInt8(truncatingIfNeeded: frame.length >> 8),
                UInt8(truncatingIfNeeded: frame.length), frame.type,
            ]
            return packet(
                entry, frame.direction, PacketKind.frame, length: 4 + frame.length,
                header + frame.payload.bytes)
        case .packet(let datagram):
            var writer = FieldWriter()
            writer.write(datagram.connection)
            writer.write(datagram.number)
            return packet(
                entry, datagram.direction, PacketKind.datagram, length: writer.bytes.count + datagram.length,
                writer.bytes + datagram.content.bytes)
        }
    }

    private mutating func packet(
        _ entry: RecordEntry, _ direction: PacketDirection, _ kind: UInt8, length: Int, _ bytes: [UInt8]
    ) -> [UInt8] {
        var blocks: [UInt8] = []
        let number: UInt32
        if let known = interfaces[entry.link] {
            number = known
        } else {
            number = UInt32(interfaces.count)
            interfaces[entry.link] = number
            blocks += interface(of: entry.link)
        }
        var flags: UInt8 = dialled.contains(entry.link) ? 1 : 0
        if proven[entry.link] != nil { flags |= 2 }
        var data = BlockBody()
        data.write(raw: [1, direction.rawValue, kind, flags])
        data.write(UInt32(Self.headerByteCount).bigEndian)
        data.write(entry.link.bigEndian)
        data.write(raw: bytes)
        var body = BlockBody()
        body.write(number)
        let time = UInt64(bitPattern: entry.time)
        body.write(UInt32(truncatingIfNeeded: time >> 32))
        body.write(UInt32(truncatingIfNeeded: time))
        body.write(UInt32(data.bytes.count))
        body.write(UInt32(Self.headerByteCount + length))
        body.write(raw: data.bytes)
        body.pad()
        // epb_flags: 1 is inbound, 2 is outbound.
        body.write(option: 2, le32: direction == .incoming ? 1 : 2)
        if missing > 0 {
            body.write(option: 4, le64: missing)
            missing = 0
        }
        body.endOptions()
        packetCount += 1
        return blocks + body.block(Block.enhancedPacket)
    }

    private func interface(of link: UInt64) -> [UInt8] {
        var body = BlockBody()
        body.write(Self.linkType)
        body.write(0 as UInt16)
        body.write(0 as UInt32)
        body.write(option: 2, Array("link \(link)".utf8))
        var description = description(of: link)
        // A record may have addresses that are too long for an option.
        while description.utf8.count > UInt16.max { description.unicodeScalars.removeLast() }
        body.write(option: 3, Array(description.utf8))
        // if_tsresol: nanoseconds.
        body.write(option: 9, [9])
        body.endOptions()
        return body.block(Block.interface)
    }

    private func description(of link: UInt64) -> String {
        guard let opening = openings[link] else { return "begun before the record" }
        let way = opening.isDialled ? "dialled" : "accepted"
        let ends = [opening.localAddress, opening.remoteAddress].map { $0?.description ?? "?" }
        return "\(way) over \(opening.scheme), here \(ends[0]), there \(ends[1])"
    }
}

/// The body of a pcapng block, in the byte order of this file, which is little-endian.
private struct BlockBody {
    private(set) var bytes: [UInt8] = []

    mutating func write<Number: FixedWidthInteger>(_ number: Number) {
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func write(raw: [UInt8]) { bytes += raw }

    mutating func pad() {
        while !bytes.count.isMultiple(of: 4) { bytes.append(0) }
    }

    mutating func write(option code: UInt16, _ value: [UInt8]) {
        write(code)
        write(UInt16(value.count))
        write(raw: value)
        pad()
    }

    mutating func write(option code: UInt16, le32 value: UInt32) {
        write(option: code, withUnsafeBytes(of: value.littleEndian) { Array($0) })
    }

    mutating func write(option code: UInt16, le64 value: UInt64) {
        write(option: code, withUnsafeBytes(of: value.littleEndian) { Array($0) })
    }

    mutating func endOptions() { write(0 as UInt32) }

    /// Returns the whole block.
    func block(_ type: UInt32) -> [UInt8] {
        var block = BlockBody()
        let length = UInt32(12 + bytes.count)
        block.write(type)
        block.write(length)
        block.write(raw: bytes)
        block.write(length)
        return block.bytes
    }
}
