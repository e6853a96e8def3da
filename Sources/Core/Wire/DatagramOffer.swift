/// The offer of one side of a link to receive datagrams: the payload of a `datagrams` frame.
package struct DatagramOffer: Equatable {
    /// The first eight bytes of each packet to the sender of the offer.
    package var connection: UInt64
    /// The length of the longest packet that the sender of the offer takes.
    package var longestPacket: Int
    /// Where to send packets, in the notation of the transport of the link. Empty for the end of the link itself.
    package var place: [UInt8]

    /// Creates an offer.
    package init(connection: UInt64, longestPacket: Int, place: [UInt8]) {
        self.connection = connection
        self.longestPacket = longestPacket
        self.place = place
    }

    /// The longest `place`.
    package static let longestPlace = 64

    /// Reads the payload of a frame. Bytes behind the place are for later versions.
    package init(reading bytes: UnsafeRawBufferPointer) throws(WireError) {
        var reader = FieldReader(bytes)
        connection = try reader.number(UInt64.self, "the connection of a datagram path")
        longestPacket = Int(try reader.number(UInt16.self, "the longest packet of a datagram path"))
        guard longestPacket >= DatagramPacket.leastLongest else {
            throw .malformed("a datagram path for packets of at most \(longestPacket) bytes")
        }
        let count = Int(try reader.number(UInt8.self, "the place of a datagram path"))
        guard count <= Self.longestPlace else {
            throw .malformed("a datagram path's place of \(count) bytes")
        }
        place = Array(try reader.take(count, "the place of a datagram path"))
    }
}

extension DatagramOffer: FramePayload {
    package var payloadLength: Int { 11 + place.count }

    package func write(to writer: inout PayloadWriter) {
        writer.write(connection)
        writer.write(UInt16(longestPacket))
        writer.write(UInt8(place.count))
        writer.write(raw: place)
    }
}
