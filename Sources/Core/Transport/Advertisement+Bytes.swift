extension Advertisement {
    /// The most bytes that ``bytes`` has, and that are read.
    public static let maximumByteCount = 1_024

    /// All of it in bytes, for transports whose wire has no text records of its own: they put these wherever others can read
    /// them. Service and name, each behind its length, then what a text record says.
    public var bytes: [UInt8] {
        var writer = FieldWriter()
        writer.write(short: service.description)
        writer.write(short: name.description)
        writer.write(raw: TextRecord(entries: AnnouncementText.entries(of: self)).data)
        return writer.bytes
    }

    /// Reads what another session wrote. Nil for what is no advertisement: bytes that others can write are not to be trusted, so a
    /// transport leaves these out and goes on.
    public init?(bytes: [UInt8]) {
        guard bytes.count <= Self.maximumByteCount else { return nil }
        let read = bytes.withUnsafeBytes { bytes -> (ServiceName, String, TextRecord)? in
            var reader = FieldReader(bytes)
            guard let service = try? ServiceName(reader.short("the service")),
                let name = try? reader.short("the name"),
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
