import NighCore

/// The service record of a session: the session publishes it on its machine, and others read it there.
///
/// The record's service class is the UUID of the service. Its protocol is RFCOMM on a channel, and its name is the
/// session's name. Two attributes of Nigh's own carry the key-value pairs that mDNS also carries, and the adapter that
/// has the channel. The adapter is needed because bluetoothd writes every record on every adapter of the machine, while
/// a session listens on one.
package struct SessionRecord: Hashable, Sendable {
    package enum Attribute {
        static let handle: UInt16 = 0x0000
        static let serviceClasses: UInt16 = 0x0001
        static let protocols: UInt16 = 0x0004
        static let browseGroups: UInt16 = 0x0005
        static let languages: UInt16 = 0x0006
        /// The name, in the record's first language.
        static let name: UInt16 = 0x0100
        static let text: UInt16 = 0x0300
        static let adapter: UInt16 = 0x0301
    }

    /// The attributes to ask for.
    static let wanted = [
        Attribute.handle, Attribute.protocols, Attribute.name, Attribute.text, Attribute.adapter,
    ]

    private static let l2cap: UInt32 = 0x0100
    private static let rfcomm: UInt32 = 0x0003
    private static let publicBrowseRoot = 0x1002

    package var advertisement: Advertisement
    package var channel: UInt8
    package var adapter: BluetoothAddress
    /// The number that its machine gave it; later records have greater numbers.
    package var handle: UInt32

    package init(
        _ advertisement: Advertisement, channel: UInt8, adapter: BluetoothAddress, handle: UInt32 = 0
    ) {
        self.advertisement = advertisement
        self.channel = channel
        self.adapter = adapter
        self.handle = handle
    }

    /// Reads a record that was found under the UUID of `service`, from alternating attributes and values. Nil if it is
    /// not the record of a session.
    package init?(_ attributes: [DataElement], of service: ServiceName) {
        var values: [UInt64: DataElement] = [:]
        for index in stride(from: 0, to: attributes.count - 1, by: 2) {
            if let number = attributes[index].unsigned { values[number] = attributes[index + 1] }
        }
        func value(_ attribute: UInt16) -> DataElement? { values[UInt64(attribute)] }
        guard let channel = value(Attribute.protocols).flatMap(Self.channel),
            let adapter = value(Attribute.adapter)?.text
                .flatMap({ BluetoothAddress(String(decoding: $0, as: UTF8.self)) }),
            let text = value(Attribute.text)?.text.flatMap(TextRecord.init(data:)),
            let advertisement = try? AnnouncementText.advertisement(
                in: text.entries, of: service,
                by: String(decoding: value(Attribute.name)?.text ?? [], as: UTF8.self))
        else { return nil }
        self.init(
            advertisement, channel: channel, adapter: adapter,
            handle: value(Attribute.handle)?.unsigned.flatMap { UInt32(exactly: $0) } ?? 0)
    }

    /// The RFCOMM channel in a list of protocols; nil if there is none.
    private static func channel(in protocols: DataElement) -> UInt8? {
        for layer in protocols.sequence ?? [] {
            guard let parts = layer.sequence, parts.count > 1,
                parts[0] == .uuid(BluetoothUUID(short: rfcomm)), let number = parts[1].unsigned
            else { continue }
            return UInt8(exactly: number).flatMap { BluetoothDestination.channels.contains($0) ? $0 : nil }
        }
        return nil
    }

    /// The record in the XML that bluetoothd takes.
    package var xml: String {
        let service = Self.uuid("\(BluetoothUUID(of: advertisement.service))")
        let protocols =
            Self.sequence(Self.uuid(Self.number(Self.l2cap)))
            + Self.sequence(
                Self.uuid(Self.number(Self.rfcomm)) + "<uint8 value=\"\(Self.number(channel))\"/>")
        let language = [0x656E, 0x006A, Int(Attribute.name)].map { "<uint16 value=\"\(Self.number($0))\"/>" }
        let text = TextRecord(entries: AnnouncementText.entries(of: advertisement)).data
        let attributes = [
            (Attribute.serviceClasses, Self.sequence(service)),
            (Attribute.protocols, Self.sequence(protocols)),
            (Attribute.browseGroups, Self.sequence(Self.uuid(Self.number(Self.publicBrowseRoot)))),
            (Attribute.languages, Self.sequence(language.joined())),
            (Attribute.name, Self.bytes(advertisement.name.description.utf8)),
            (Attribute.text, Self.bytes(text)),
            (Attribute.adapter, Self.bytes(adapter.description.utf8)),
        ]
        let body = attributes.map { "<attribute id=\"\(Self.number($0.0))\">\($0.1)</attribute>" }
        return "<?xml version=\"1.0\" encoding=\"UTF-8\"?><record>\(body.joined())</record>"
    }

    private static func sequence(_ content: String) -> String { "<sequence>\(content)</sequence>" }

    private static func uuid(_ value: String) -> String { "<uuid value=\"\(value)\"/>" }

    /// Hexadecimal digits only, so that no name can be read as markup.
    private static func bytes(_ bytes: some Sequence<UInt8>) -> String {
        let digits = bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        return "<text encoding=\"hex\" value=\"\(digits)\"/>"
    }

    private static func number(_ number: some BinaryInteger) -> String {
        let digits = String(number, radix: 16)
        return "0x" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }
}
