import NighCore

/// The content of packets, and the offers of datagram paths. What is read must be written as it was.
enum PacketTarget {
    private static let token: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]
    /// Valid contents of all kinds, a probe with what follows it, and one of a later kind.
    static let contents: [[UInt8]] = [
        [1] + token, [1] + token + [UInt8](repeating: 0, count: 60), [2] + token, [3, 0], [3, 1] + token,
        [3, 255] + [UInt8](repeating: 7, count: 300), [4, 1, 0, 0, 0, 1, 0, 2, 9],
        [4, 0, 0, 0, 0, 1, 1, 2] + token, [4, 7, 255, 255, 255, 255, 254, 255, 1],
        [5] + token + [0, 0, 0, 9] + token, [6, 1, 2],
    ]
    private static let offers: [[UInt8]] = [
        DatagramOffer(connection: 1, longestPacket: 1_200, place: [0x1F, 0x90]).payload,
        DatagramOffer(connection: .max, longestPacket: 8_952, place: []).payload,
        DatagramOffer(connection: 9, longestPacket: 65_535, place: [UInt8](repeating: 5, count: 64)).payload
            + [1, 2],
    ]

    // MARK: Packets that only a checksum protects

    /// Seals with a checksum, which needs no secret.
    static func sealed(_ content: [UInt8], number: UInt64, connection: UInt64) -> [UInt8] {
        let headerCount = DatagramPacket.headerByteCount
        let checksum = DatagramCipher(.checksum, secret: nil, isSealing: true)
        var packet = [UInt8](repeating: 0, count: headerCount) + content
        let count = packet.count
        packet += [UInt8](repeating: 0, count: checksum.tagByteCount)
        packet.withUnsafeMutableBytes {
            DatagramPacket.writeHeader(connection: connection, number: number, to: $0)
            _ = checksum.seal($0, headerCount: headerCount, count: count, number: number)
        }
        return packet
    }

    /// Returns what is in a packet with a checksum; nil if the packet is too short.
    static func unsealed(_ packet: [UInt8]) -> (content: [UInt8], number: UInt64, connection: UInt64)? {
        let tagCount = DatagramCipher(.checksum, secret: nil, isSealing: false).tagByteCount
        guard packet.count > DatagramPacket.headerByteCount + tagCount else { return nil }
        let content = Array(packet[DatagramPacket.headerByteCount...].dropLast(tagCount))
        return packet.withUnsafeBytes {
            (content, DatagramPacket.number(of: $0), DatagramPacket.connection(of: $0) ?? 0)
        }
    }

    // MARK: The target

    /// Returns whether the content was valid.
    @discardableResult
    static func run(_ mutator: inout Mutator) throws -> Bool {
        try offer(mutator.perhapsChanged(mutator.pick(offers), with: offers))
        return try content(mutator.perhapsChanged(mutator.pick(contents), with: contents))
    }

    private static func content(_ bytes: [UInt8]) throws -> Bool {
        try bytes.withUnsafeBytes { raw in
            guard let content = try read(raw) else { return false }
            var written = [UInt8](repeating: 0, count: bytes.count)
            let count = written.withUnsafeMutableBytes(content.write)
            // What follows the fields is ignored: zeros give a probe its length.
            guard written.prefix(count) == bytes.prefix(count) else {
                throw Finding("\(bytes) became \(written)")
            }
            switch content {
            case .message, .fragment:
                if count != bytes.count { throw Finding("a message of \(bytes) is cut") }
            case .probe, .answer, .report: break
            }
            let isSame = try written.withUnsafeBytes { try read(.init(rebasing: $0[..<count])) == content }
            if !isSame { throw Finding("\(bytes) is read differently the second time") }
            return true
        }
    }

    /// Reads a content; nil if it is invalid, or of a later kind.
    private static func read(_ bytes: UnsafeRawBufferPointer) throws -> DatagramContent? {
        do throws(WireError) {
            if let content = try DatagramContent(reading: bytes) { return content }
        } catch {
            if error.message.isEmpty { throw Finding("a content is refused without a reason") }
            return nil
        }
        if let kind = bytes.first, (1...5).contains(kind) { throw Finding("the kind \(kind) is unknown") }
        return nil
    }

    private static func offer(_ bytes: [UInt8]) throws {
        guard let offer = try bytes.withUnsafeBytes(readOffer) else { return }
        let payload = offer.payload
        guard payload == Array(bytes.prefix(payload.count)) else {
            throw Finding("the offer \(bytes) became \(payload)")
        }
        guard offer.longestPacket >= DatagramPacket.leastLongest,
            offer.place.count <= DatagramOffer.longestPlace
        else { throw Finding("the offer \(bytes) breaks its rules") }
    }

    private static func readOffer(_ bytes: UnsafeRawBufferPointer) throws -> DatagramOffer? {
        do throws(WireError) {
            return try DatagramOffer(reading: bytes)
        } catch {
            if error.message.isEmpty { throw Finding("an offer is refused without a reason") }
            return nil
        }
    }
}
