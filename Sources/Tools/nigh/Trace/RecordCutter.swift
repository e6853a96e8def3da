import NighCore

/// Finds the records in one direction of a stream, whose bytes come in pieces. Keeps only the beginning of a record,
/// which contains everything that a trace shows; the rest is counted.
struct RecordCutter {
    /// A record, or its beginning.
    struct RecordHead {
        let head: ByteSlice
        /// The number of bytes that the whole record has.
        let length: Int
    }

    /// The most bytes that are kept of a record: more than any has in front of its content.
    static let headLimit = 2_048

    private var head: [UInt8] = []
    /// The number of bytes of the record that have come, with the length in front.
    private var count = 0
    private var length: Int?

    /// Returns the records that end with these bytes.
    mutating func append(_ bytes: ByteSlice) -> [RecordHead] {
        bytes.withUnsafeBytes { bytes in
            var records: [RecordHead] = []
            var position = 0
            while position < bytes.count {
                let headerCount = StreamMessageParser.headerCount
                let left = headerCount + (length ?? 0) - count
                let part = bytes[position..<min(position + left, bytes.count)]
                head += part.prefix(headerCount + Self.headLimit - head.count)
                count += part.count
                position += part.count
                if length == nil, count == headerCount {
                    length = head.reduce(0) { $0 << 8 | Int($1) }
                }
                if let length, count == headerCount + length {
                    records.append(RecordHead(head: ByteSlice(head[headerCount...]), length: length))
                    self = RecordCutter()
                }
            }
            return records
        }
    }
}
