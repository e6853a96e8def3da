extension Advertisement {
    /// The most bytes that ``bytes`` has, and that ``init(bytes:)`` reads.
    public static let maximumByteCount = 1_024

    /// The advertisement as bytes, for transports whose wire has no text records of its own. They put these bytes
    /// wherever others can read them. First come service and name, each behind its length, then the data of a text
    /// record.
    public var bytes: [UInt8] {
        var writer = FieldWriter()
        writer.write(short: service.description)
        writer.write(short: name.description)
        writer.write(raw: TextRecord(entries: AnnouncementText.entries(of: self)).data)
        return writer.bytes
    }

    /// Parses the bytes of another session. Returns nil if they are not an advertisement. Bytes that others can write
    /// are not to be trusted, so a transport leaves invalid ones out and goes on.
    public init?(bytes: [UInt8]) {
        guard bytes.count <= Self.maximumByteCount else { return nil }
        let read = bytes.withUnsafeBytes { bytes -> (ServiceName, String, TextRecord)? in
            var reader = FieldReader(bytes)
            guard let service = try? ServiceName(reader.shortText("the service")),
                let name = try? reader.shortText("the name"),
                let record = TextRecord(data: Array(reader.rest()))
            else { return nil }
            return (service, name, record)
        }
        guard let (service, name, record) = read,
            let advertisement = try? AnnouncementText.advertisement(in: record.entries, of: service, by: name)
        else { return nil }
        self = advertisement
    }
}
